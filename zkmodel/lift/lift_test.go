package lift_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/configs/clock"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/lift"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	who    = operate.RequestorMark + "ann@desk"
	second = time.Second
)

// dial opens a session at an address, with a log of events.
func dial(t *testing.T, addr, root string) (*recipe.Client, *zkmodel.Store) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/test"))
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client, zkmodel.NewStore(session, nil)
}

// lifts runs a Lifter until the test ends.
func lifts(t *testing.T, client *recipe.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() { (&lift.Lifter{Client: client, Log: hclog.NewNullLogger()}).Run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// paused says of images what their flags are, and what is known of those.
func paused(t *testing.T, store *zkmodel.Store) string {
	t.Helper()
	images, err := store.Images(t.Context())
	must(t, err)
	var list []string
	for _, i := range images {
		switch {
		case i.PausedBy != nil:
			list = append(list, i.Name+" by "+i.PausedBy.By+" "+i.PausedBy.Reason)
		case i.Paused:
			list = append(list, i.Name)
		}
	}
	return strings.Join(list, ", ")
}

// nodepool pauses or unpauses as Nodepool's command does.
func nodepool(t *testing.T, store *zkmodel.Store, image string, pause bool) {
	t.Helper()
	path := zkmodel.PausePath(image)
	if pause {
		must(t, store.Session().EnsurePath(t.Context(), path))
		return
	}
	must(t, store.Session().Delete(t.Context(), path, recipe.AnyVersion))
}

// Pauses and holds end by themselves, and are told, also when no daemon ran at their time and
// when two come at once; what others have paused since stays. Mistakes: an image that is never
// built again; one that is built although an operator has paused it anew, by this program or
// by Nodepool's; an end that is told twice, or not at all.
func TestEndsByThemselves(t *testing.T) {
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	one, store := dial(t, addr, root)
	two, _ := dial(t, addr, root)
	ctx, op, waves := t.Context(), operate.New(store, who), wave.NewStore(store.Session())
	pause := func(image string, limit time.Duration) {
		t.Helper()
		_, err := op.Pause(ctx, image, "new mirror", limit)
		must(t, err)
	}
	for _, image := range []string{"again", "ends", "swapped", "told"} {
		pause(image, second)
	}
	pause("again", 0) // the last word counts
	pause("later", time.Hour)
	nodepool(t, store, "swapped", false)
	nodepool(t, store, "swapped", true)
	nodepool(t, store, "theirs", true)
	pause("theirs", second)
	pause("unpaused", second)
	must(t, op.Unpause(ctx, "unpaused"))
	for _, id := range []string{"w1", "w2"} {
		_, err := waves.Create(ctx, &wave.Wave{ID: id, Until: wave.UntilBuilt, MaxFailures: "20%"}, []wave.Job{{Image: "a"}, {Image: "b"}})
		must(t, err)
	}
	soon := time.Now().Add(second)
	for _, held := range []wave.Target{{}, {ID: "w1"}, {ID: "w1", Image: "b"}, {ID: "w2"}} {
		must(t, waves.Hold(ctx, held, wave.Word{By: who}))
		must(t, waves.Hold(ctx, held, wave.Word{By: who, Reason: "new mirror", Until: &soon}))
	}
	must(t, waves.Hold(ctx, wave.Target{ID: "w2"}, wave.Word{By: who, Reason: "broken"}))
	if got := paused(t, store); !strings.Contains(got, "later by "+who+" new mirror, swapped, theirs by "+who) {
		t.Errorf("paused are %s", got)
	}
	zktest.Eventually(t, func() bool { return time.Since(soon) > second }, "no daemon runs at their time")
	lifts(t, one)
	lifts(t, two)
	zktest.Eventually(t, func() bool {
		return paused(t, store) == "again by "+who+" new mirror, later by "+who+" new mirror, swapped"
	}, "pauses end that are over, and no others")
	zktest.Eventually(t, func() bool {
		_, all, err := waves.AllHeld(ctx)
		must(t, err)
		w1, err := waves.Wave(ctx, "w1")
		must(t, err)
		return !all && len(w1.Marks) == 0
	}, "holds end")
	w2, err := waves.Wave(ctx, "w2")
	if err != nil || w2.Marks[wave.MarkHold].Reason != "broken" || w2.Marks[wave.MarkHold].Until != nil {
		t.Errorf("%+v: %v", w2.Marks, err)
	}
	pause("told", 2*second) // while daemons run
	zktest.Eventually(t, func() bool { return !strings.Contains(paused(t, store), "told") }, "a pause ends in time")
	ends := map[string]int{}
	for _, text := range told(t, store) {
		for _, kind := range []string{event.ImageUnpaused, event.WaveReleased} {
			if strings.Contains(text, kind) && strings.Contains(text, zkmodel.PauseOver) {
				ends[kind]++
			}
		}
	}
	if ends[event.ImageUnpaused] != 4 || ends[event.WaveReleased] != 3 {
		t.Errorf("ends were told: %v", ends)
	}
}

// told are the events of a site.
func told(t *testing.T, store *zkmodel.Store) []string {
	t.Helper()
	var list []string
	for reader := store.Session().Log().Read(store.Session(), recipe.LogPosition{}); ; {
		entry, ok, err := reader.Poll(t.Context())
		must(t, err)
		if !ok {
			return list
		}
		list = append(list, string(entry.Data))
	}
}

// Where nobody has paused, daemons read and write nothing. Catches: a figure of load that
// grows with the daemons.
func TestNothingPaused(t *testing.T) {
	root := zktest.Root(t)
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	client, store := dial(t, tap.Addr(), root)
	nodepool(t, store, "theirs", true)
	lifts(t, client)
	zktest.Eventually(t, func() bool { return tap.Naming(zkmodel.PausesPath) > 0 }, "it follows")
	nodepool(t, store, "theirs", false)
	nodepool(t, store, "theirs", true)
	if n := tap.Naming(zkmodel.OwnRoot); n > 2 { // those with which it begins to follow
		t.Errorf("%d requests", n)
	}
	if _, there, err := store.Session().Exists(t.Context(), zkmodel.OwnRoot); there || err != nil {
		t.Errorf("%s is there: %v", zkmodel.OwnRoot, err)
	}
}

// A command or a daemon that is killed at whatever request of it has done all or nothing, and
// the next daemon ends what is over. Mistakes: a flag that ends never, as nothing is known of
// it; one whose end is told although it stands.
func TestKilledAtEveryRequest(t *testing.T) {
	const atOnce = 16
	var whole atomic.Int32
	for first := 2; whole.Load() == 0 && !t.Failed(); first += atOnce {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			for requests := first; requests < first+atOnce; requests++ {
				t.Run(strconv.Itoa(requests), func(t *testing.T) {
					t.Parallel()
					if killedAfter(t, requests) {
						whole.Store(int32(requests))
					}
				})
			}
		})
	}
}

// killedAfter kills a command that pauses, and then a daemon that ends it, after some requests.
// It reports whether both had come to their end.
func killedAfter(t *testing.T, requests int) (done bool) {
	t.Helper()
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	client, store := dial(t, addr, root)
	dying := func(do func(context.Context, *recipe.Client, *zkmodel.Store) bool) bool {
		tap := zktest.StartTap(t, addr, requests)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		defer cancel()
		theirs, err := recipe.Dial(recipe.Config{Servers: []string{tap.Addr()}, Chroot: root, Timeout: 2 * time.Second})
		must(t, err)
		theirs.SetLog(recipe.NewLog(event.Root, "/poolkeeper/dying"))
		ended := make(chan bool, 1)
		go func() {
			session, err := theirs.Session(ctx)
			ended <- err == nil && do(ctx, theirs, zkmodel.NewStore(session, nil))
		}()
		ok, over := false, false
		zktest.Eventually(t, func() bool {
			select {
			case ok = <-ended:
				over = true
			default:
			}
			return over || tap.Ended()
		}, "it ends, or is killed")
		cancel()
		theirs.Close()
		if !over {
			<-ended
		}
		return ok
	}
	done = dying(func(ctx context.Context, _ *recipe.Client, theirs *zkmodel.Store) bool {
		_, err := operate.New(theirs, who).Pause(ctx, "a", "why", second)
		return err == nil
	})
	_, flag, err := store.Session().Exists(t.Context(), zkmodel.PausePath("a"))
	must(t, err)
	pauses, err := zkmodel.ReadPauses(t.Context(), store.Session())
	must(t, err)
	if noted := len(pauses.All) == 1; noted != flag || done && !flag {
		t.Errorf("killed after %d requests: flag %t, noted %t", requests, flag, noted)
	}
	if !flag {
		return false
	}
	done = dying(func(ctx context.Context, c *recipe.Client, theirs *zkmodel.Store) bool {
		running, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		group.Go(func() { (&lift.Lifter{Client: c, Log: hclog.NewNullLogger()}).Run(running) })
		defer group.Wait()
		defer stop()
		for ctx.Err() == nil {
			if paused, err := store.ImagePaused(ctx, "a"); err == nil && !paused {
				return true
			}
			_ = clock.Sleep(ctx, 20*time.Millisecond) // or ctx has ended, which is looked at
		}
		return false
	}) && done
	lifts(t, client)
	zktest.Eventually(t, func() bool {
		pauses, err := zkmodel.ReadPauses(t.Context(), store.Session())
		must(t, err)
		return paused(t, store) == "" && len(pauses.All) == 0
	}, "the next daemon ends it")
	return done
}
