package cloud_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/providertest"
	"poolkeeper/test/sim/cloud"
)

func section() configs.Provider {
	return configs.Provider{
		Name: "north", Driver: "fake", UnansweredCreateTimeout: 2 * time.Minute,
		Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small", DiskImage: "debian"}}}},
	}
}

func imageFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.qcow2")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The simulated cloud keeps what all providers promise, while no fault is on. The suite runs
// outside of a bubble, since it has tests within tests: so its answers take a millisecond.
func TestContract(t *testing.T) {
	clouds := map[string]*cloud.Cloud{}
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, dir string) providers.Provider {
			t.Helper()
			if clouds[dir] == nil {
				clouds[dir] = cloud.New(cloud.Options{Answer: 100 * time.Microsecond, Instances: 5})
			}
			return open(t, clouds[dir].Agent("suite"))
		},
		Image: imageFile, Format: "qcow2", Pool: "main", Label: "small", Room: 5,
	})
}

func open(t *testing.T, a *cloud.Agent) providers.Provider {
	t.Helper()
	p, err := a.Open(section())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rig is a cloud in a bubble, and all that is told of it.
type rig struct {
	*testing.T
	cloud *cloud.Cloud
	file  string

	mu   sync.Mutex
	told []cloud.Event
}

func inBubble(t *testing.T, seed uint64, test func(*rig)) {
	t.Helper()
	file := imageFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, file: file}
		r.cloud = cloud.New(cloud.Options{Seed: seed, Told: func(e cloud.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, e)
		}})
		test(r)
	})
}

// ops are the changes that were told, as "agent op".
func (r *rig) ops() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.told {
		list = append(list, e.Agent+" "+e.Op)
	}
	return list
}

func meta(name, key, id string) map[string]string {
	return map[string]string{providers.MetaProvider: name, providers.MetaSite: "ours", key: id}
}

func (r *rig) upload(ctx context.Context, p providers.Provider) (string, error) {
	return p.UploadImage(ctx, providers.ImageUpload{
		Name: "image", Path: r.file, Format: "qcow2", Size: 1 << 20, Metadata: meta(p.Name(), providers.MetaUpload, "1"),
	})
}

func spec(p providers.Provider, id, image string) providers.NodeSpec {
	return providers.NodeSpec{NodeID: id, Hostname: "np" + id, Pool: "main", Label: "small", ImageID: image, Metadata: meta(p.Name(), providers.MetaNode, id)}
}

func (r *rig) want(what string, got, want any) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Mistake: a crashed agent that still changes clouds; a call in flight that is always, or never,
// done; a call of a dead agent that does not return.
func TestCrash(t *testing.T) {
	outcomes := map[int]int{}
	for seed := range uint64(20) {
		inBubble(t, seed, func(r *rig) {
			agent := r.cloud.Agent("one")
			p := open(r.T, agent)
			id, err := r.upload(r.Context(), p)
			if err != nil {
				r.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- p.DeleteImage(r.Context(), id) }()
			synctest.Wait()
			agent.Crash()
			if err := <-done; !errors.Is(err, cloud.ErrCrashed) {
				r.Errorf("a call in flight ended with %v", err)
			}
			outcomes[len(r.cloud.Images("north"))]++
			before := len(r.ops())
			_, _ = r.upload(r.Context(), p)
			_, err = p.ListImages(r.Context())
			if !errors.Is(err, cloud.ErrCrashed) || len(r.ops()) != before {
				r.Errorf("a dead agent's calls: %v, %d changes", err, len(r.ops())-before)
			}
		})
	}
	if outcomes[0] < 3 || outcomes[1] < 3 {
		t.Errorf("of 20 deletions in flight %d were done and %d not", outcomes[0], outcomes[1])
	}
}

// Mistakes: a paused agent that asks for something, or hears something; one that crashed half-way
// through an upload and leaves nothing to be found.
func TestPauseAndHalfUpload(t *testing.T) {
	inBubble(t, 1, func(r *rig) {
		agent := r.cloud.Agent("one")
		p := open(r.T, agent)
		agent.Pause()
		done := make(chan error)
		go func() { _, err := r.upload(r.Context(), p); done <- err }()
		pass(time.Hour)
		r.want("of a paused agent", r.ops(), []string(nil))
		agent.Resume()
		pass(time.Second)
		agent.Pause()
		pass(time.Hour)
		select {
		case err := <-done:
			r.Errorf("a paused agent has heard %v", err)
		default:
		}
		agent.Crash()
		if err := <-done; !errors.Is(err, cloud.ErrCrashed) {
			r.Error(err)
		}
		r.want("left", len(r.cloud.Images("north")), 1)
	})
}

// Each fault does what it says, is counted, and ends with Heal.
func TestFaults(t *testing.T) {
	minute := func(r *rig) (context.Context, context.CancelFunc) {
		return context.WithTimeout(r.Context(), time.Minute)
	}
	type test struct {
		op    string
		want  error
		made  int // images, or machines, that are there afterwards
		later int // and an hour later
	}
	tests := map[cloud.Fault]test{
		cloud.Error:     {cloud.OpCreate, providers.ErrTransient, 0, 0},
		cloud.Refused:   {cloud.OpCreate, providers.ErrQuota, 0, 0},
		cloud.Hung:      {cloud.OpCreate, context.DeadlineExceeded, 0, 0},
		cloud.Lost:      {cloud.OpCreate, providers.ErrUnanswered, 1, 1},
		cloud.Late:      {cloud.OpCreate, providers.ErrUnanswered, 0, 1},
		cloud.Fails:     {cloud.OpCreate, nil, 1, 1},
		cloud.Stale:     {cloud.OpCreate, nil, 1, 1},
		cloud.Duplicate: {cloud.OpCreate, nil, 2, 2},
		cloud.Slow:      {cloud.OpCreate, nil, 1, 1},
	}
	for fault, test := range tests {
		t.Run(string(fault), func(t *testing.T) {
			inBubble(t, 7, func(r *rig) {
				p := open(r.T, r.cloud.Agent("one"))
				id, err := r.upload(r.Context(), p)
				if err != nil {
					r.Fatal(err)
				}
				r.cloud.Set("north", fault, 1)
				ctx, cancel := minute(r)
				defer cancel()
				began := time.Now()
				node, err := p.CreateNode(ctx, spec(p, "1", id))
				if !errors.Is(err, test.want) {
					r.Errorf("CreateNode gave %v, want %v", err, test.want)
				}
				if took := time.Since(began); fault == cloud.Slow && took < 5*time.Second {
					r.Errorf("slow took %s", took)
				}
				r.want("made", len(r.cloud.Nodes("north")), test.made)
				r.want("met", r.cloud.Met(), map[string]int{test.op + "/" + string(fault): 1})
				r.cloud.Heal("north")
				list, err := p.ListNodes(r.Context())
				if want := test.made; fault == cloud.Stale && err == nil && len(list) == want {
					r.Error("a stale list shows a new machine at once")
				}
				pass(time.Hour)
				list, err = p.ListNodes(r.Context())
				if err != nil || len(list) != test.later {
					r.Errorf("an hour later %d are listed, want %d; %v", len(list), test.later, err)
				}
				if _, err := p.WaitNode(r.Context(), node); fault == cloud.Fails != errors.Is(err, providers.ErrNodeFailed) {
					r.Errorf("WaitNode gave %v", err)
				}
			})
		})
	}
}

// Mistakes: an upload whose answer is lost, and that is undone all the same; a deleted image that
// lists forget at once; limits that do not lie; a hung call that outlives the fault.
func TestFaultsOfImagesAndLimits(t *testing.T) {
	inBubble(t, 3, func(r *rig) {
		p := open(r.T, r.cloud.Agent("one"))
		r.cloud.Set("north", cloud.Lost, 1)
		if _, err := r.upload(r.Context(), p); !errors.Is(err, providers.ErrTransient) {
			r.Errorf("an upload without an answer gave %v", err)
		}
		r.cloud.Heal("north")
		left := r.cloud.Images("north")
		r.want("images", len(left), 1)
		r.cloud.Set("north", cloud.Stale, 1)
		if err := p.DeleteImage(r.Context(), left[0].ExternalID); err != nil {
			r.Error(err)
		}
		r.want("images", len(r.cloud.Images("north")), 0)
		if list, err := p.ListImages(r.Context()); err != nil || len(list) != 1 {
			r.Errorf("a stale list shows %d, %v", len(list), err)
		}
		pass(time.Minute)
		if list, err := p.ListImages(r.Context()); err != nil || len(list) != 0 {
			r.Errorf("a minute later it shows %d, %v", len(list), err)
		}
		r.cloud.Heal("north")
		for fault, less := range map[cloud.Fault]bool{cloud.More: false, cloud.Less: true} {
			r.cloud.Set("north", fault, 1)
			if got, err := p.Limits(r.Context(), nil); err != nil || got[providers.Instances] < 20 != less || got[providers.Instances] == 20 {
				r.Errorf("%s: limits %v, %v", fault, got, err)
			}
			r.cloud.Heal("north")
		}
		r.cloud.Set("north", cloud.Hung, 1)
		done := make(chan error)
		go func() { _, err := p.ListImages(r.Context()); done <- err }()
		pass(time.Hour)
		r.cloud.Heal("north")
		if err := <-done; !errors.Is(err, providers.ErrTransient) {
			r.Errorf("a hung call ended with %v", err)
		}
	})
}

// Mistakes: things of others that lists show as ours; what vanishes is not told; room that is
// taken twice.
func TestOthersAndVanished(t *testing.T) {
	inBubble(t, 5, func(r *rig) {
		p := open(r.T, r.cloud.Agent("one"))
		r.cloud.PlantNode("north", "other", map[string]string{"owner": "a person"})
		r.cloud.PlantImage("north", "other", map[string]string{providers.MetaProvider: "north", providers.MetaSite: "theirs"})
		if list, err := p.ListNodes(r.Context()); err != nil || len(list) != 0 {
			r.Errorf("listed %v, %v", list, err)
		}
		if got, err := p.Limits(r.Context(), nil); err != nil || got[providers.Instances] != 19 {
			r.Errorf("limits %v, %v", got, err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		if r.cloud.VanishImage("north", "ours", rng) {
			r.Error("an image of others has vanished")
		}
		id, err := r.upload(r.Context(), p)
		if err != nil {
			r.Fatal(err)
		}
		if !r.cloud.VanishImage("north", "ours", rng) || r.cloud.VanishNode("north", "ours", rng) {
			r.Error("the wrong thing has vanished")
		}
		if _, err := p.CreateNode(r.Context(), spec(p, "1", id)); !errors.Is(err, providers.ErrNotFound) {
			r.Errorf("a machine from an image that has gone: %v", err)
		}
		r.want("told", r.ops(), []string{" create", " upload", "one upload", "one ready", " delete-image"})
	})
}

// Mistake: one seed that gives other faults, or other delays, the second time.
func TestSeedsRepeat(t *testing.T) {
	run := func(seed uint64) (times []time.Duration) {
		inBubble(t, seed, func(r *rig) {
			began := time.Now()
			p := open(r.T, r.cloud.Agent("one"))
			r.cloud.Set("north", cloud.Error, 0.5)
			for range 20 {
				_, _ = p.ListNodes(r.Context())
				times = append(times, time.Since(began), time.Duration(r.cloud.Met()["list-nodes/error"]))
			}
		})
		return times
	}
	if a, b := run(1), run(1); !slices.Equal(a, b) {
		t.Errorf("the same seed: %v, then %v", a, b)
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("two seeds give the same")
	}
	if kinds := cloud.Kinds(); len(kinds) < 30 || !slices.IsSorted(kinds) || slices.Contains(kinds, "limits/lost") {
		t.Errorf("kinds of faults: %v", kinds)
	}
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }
