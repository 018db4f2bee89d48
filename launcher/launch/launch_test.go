package launch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// first fails some calls at first.
func first(times int, err error) func(int) error {
	return func(try int) error {
		if try <= times {
			return err
		}
		return nil
	}
}

// Mistake: a second machine that is asked for while the first, which failed, is there
// still; or a record of a node that is ready which names the wrong one.
func TestEachAttemptBeginsFromNothing(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{wait: first(1, providers.ErrNodeFailed)})
	n := r.building()
	if err := r.Bring(t.Context(), r.order, n); err != nil {
		t.Fatal(err)
	}
	r.calls("create", "wait vm1", "delete vm1", "create", "wait vm4")
	got := r.read(n.Node.ID)
	if got.State != zkmodel.NodeReady || got.ExternalID.Text() != "vm4" || got.Attempt != 2 || got.InterfaceIP != "192.0.2.1" || got.Username != "tester" {
		t.Errorf("node %+v", got)
	}
	if !slices.Equal(r.tried, []string{"failed", "ready"}) {
		t.Errorf("tried %q", r.tried)
	}
	if want := []step.Step{step.Created, step.Created, step.Booted, step.Ready}; !slices.Equal(r.steps, want) {
		t.Errorf("steps %q, want %q", r.steps, want)
	}
}

// Mistake: an error after which another attempt is made in vain, or none that would have
// helped; and a state that tells a request's owner the wrong reason.
func TestHowALaunchEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		create, wait error
		retries      int // of the provider; 3 when 0
		state        zkmodel.NodeState
		creates      int
		refused      bool
	}{
		"the cloud is full":        {create: providers.ErrQuota, state: zkmodel.NodeAborted, creates: 1, refused: true},
		"full, as it shows late":   {wait: providers.ErrQuota, state: zkmodel.NodeAborted, creates: 1, refused: true},
		"it makes no sense":        {create: providers.ErrInvalid, state: zkmodel.NodeFailed, creates: 1},
		"the cloud is of no use":   {create: providers.ErrUnusable, state: zkmodel.NodeFailed, creates: 1},
		"it never boots":           {wait: providers.ErrNodeFailed, state: zkmodel.NodeFailed, creates: 4}, // the last from the build before
		"a moment's trouble":       {create: providers.ErrTransient, state: zkmodel.NodeFailed, creates: 3},
		"one attempt is allowed":   {create: providers.ErrTransient, retries: 1, state: zkmodel.NodeFailed, creates: 1},
		"another's error, retried": {create: errors.New("out of cheese"), state: zkmodel.NodeFailed, creates: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, &sky{create: first(9, c.create), wait: first(9, c.wait)}, func(p *configs.Provider) {
				if c.retries > 0 {
					p.LaunchRetries = c.retries
				}
			})
			n := r.building()
			want := cmp.Or(c.create, c.wait)
			if err := r.Bring(t.Context(), r.order, n); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			got := r.read(n.Node.ID)
			if got.State != c.state || got.Reason == "" || len(r.sky.images) != c.creates {
				t.Errorf("node is %s (%s) after %d creations, want %s after %d", got.State, got.Reason, len(r.sky.images), c.state, c.creates)
			}
			// Until the refusal is known the launch must count.
			if told := slices.Equal(r.teacher.refused, []string{n.Node.ID + " building"}); told != c.refused {
				t.Errorf("taught %q", r.teacher.refused)
			}
		})
	}
}

// Mistake: a node that is ready in the tree before its request is, so that a launcher that
// dies between the two leaves a node that is not handed over.
func TestOnlyNodeIsReadyWithItsRequest(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{})
	r.order.Alone = true
	n := r.building()
	if err := r.Bring(t.Context(), r.order, n); err != nil {
		t.Fatal(err)
	}
	if got := r.read(n.Node.ID); got.State != zkmodel.NodeBuilding || !n.Unsaved || n.Node.State != zkmodel.NodeReady {
		t.Errorf("in the tree %s, in hand %s, unsaved %t", got.State, n.Node.State, n.Unsaved)
	}
	if seen := r.Own.Nodes(); len(seen) != 1 || seen[0].State != zkmodel.NodeReady {
		t.Errorf("decisions see %+v", seen)
	}
}

// Mistake: a new node without an image that is launched all the same, or that is left as
// new, which means that its launcher died.
func TestNodeWithoutAnImageIsNotBegun(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{})
	n := r.node("imageless")
	if err := r.Prepare(r.order, n); err != nil || !errors.Is(n.Err, pool.ErrNoImage) || n.Node.State != zkmodel.NodeDeleting || n.Node.Reason == "" {
		t.Errorf("%v; %v, %s (%s)", err, n.Err, n.Node.State, n.Node.Reason)
	}
	if err := r.Bring(t.Context(), r.order, n); !errors.Is(err, pool.ErrNoImage) {
		t.Errorf("brought: %v", err)
	}
	r.calls()
	used := r.node("small", func(n *zkmodel.Node) { n.State = zkmodel.NodeUsed })
	if err := r.Prepare(r.order, used); !errors.Is(err, zkmodel.ErrTransition) {
		t.Errorf("a node that was used is begun: %v", err)
	}
}

// Mistake: a launcher that goes on with another's node and makes a second machine, or
// waits for ever for one that was never made.
func TestMachineOfALauncherThatIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noted, there bool
		calls        []string
	}{
		"its id is in the record":     {noted: true, there: true, calls: []string{"wait vm0"}},
		"it was made, and not noted":  {there: true, calls: []string{"wait vm0"}},
		"it was never made":           {calls: []string{"create", "wait vm1"}},
		"it is noted, and gone again": {noted: true, calls: []string{"wait vm0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, &sky{})
			n := r.building()
			if c.there {
				r.sky.put(map[string]string{
					providers.MetaNode: n.Node.ID, providers.MetaProvider: "sky", providers.MetaSite: "site", providers.MetaLaunch: n.Node.LaunchID,
				})
			}
			if c.noted {
				n.Node.ExternalID = zkmodel.TextValue("vm0")
			}
			n.Resumed = true
			if err := r.Bring(t.Context(), r.order, n); err != nil {
				t.Fatal(err)
			}
			r.calls(c.calls...)
		})
	}
}

// Mistake: a launch that goes on when its lock is another's: it would write over what that
// one does.
func TestLaunchEndsWithItsLock(t *testing.T) {
	t.Parallel()
	s := &sky{}
	r := newRoom(t, s)
	n := r.building()
	s.wait = func(int) error { return errors.Join(providers.ErrTransient, n.Lock.Release(t.Context())) }
	if err := r.Bring(t.Context(), r.order, n); !errors.Is(err, recipe.ErrReleased) {
		t.Errorf("%v, want the end of the lock", err)
	}
	if got := r.read(n.Node.ID); got.State != zkmodel.NodeBuilding {
		t.Errorf("node is %s", got.State)
	}
	r.calls("create", "wait vm1")
}

// Mistake: a second machine for a creation that was not answered while the first may come,
// or a launch that does not make one when none can come any more.
func TestUnansweredCreation(t *testing.T) {
	t.Parallel()
	unanswered := func(s *sky, made bool) func(int) error {
		return func(try int) error {
			if try > 1 {
				return nil
			}
			if made {
				s.hidden = time.Now().Add(300 * time.Millisecond)
			}
			return providers.ErrUnanswered
		}
	}
	t.Run("it is made", func(t *testing.T) {
		t.Parallel()
		s := &sky{}
		r := newRoom(t, s)
		n := r.building()
		s.create = unanswered(s, true)
		s.put(map[string]string{providers.MetaNode: n.Node.ID, providers.MetaProvider: "sky", providers.MetaLaunch: n.Node.LaunchID})
		if err := r.Bring(t.Context(), r.order, n); err != nil {
			t.Fatal(err)
		}
		r.calls("create", "wait vm0")
		if got := r.read(n.Node.ID); got.State != zkmodel.NodeReady || got.Unanswered() || got.Reason != "" {
			t.Errorf("node %+v", got)
		}
	})
	t.Run("it never is", func(t *testing.T) {
		t.Parallel()
		s := &sky{}
		s.create = unanswered(s, false)
		r := newRoom(t, s, func(p *configs.Provider) { p.UnansweredCreateTimeout = 400 * time.Millisecond })
		begun := time.Now()
		if err := r.Bring(t.Context(), r.order, r.building()); err != nil {
			t.Fatal(err)
		}
		r.calls("create", "create", "wait vm2")
		if took := time.Since(begun); took < 400*time.Millisecond {
			t.Errorf("another was asked for after %s", took)
		}
	})
}

// Mistake: a request that waits for a machine that may never come, while another provider
// would take it; or a node that gives its place away before its machine cannot come.
func TestRequestMovesOnFromASilentCloud(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{create: first(1, providers.ErrUnanswered)}, func(p *configs.Provider) { p.UnansweredCreateTimeout = time.Hour })
	n := r.building()
	ended := make(chan error, 1)
	go func() { ended <- r.Bring(t.Context(), r.order, n) }()
	for {
		select {
		case err := <-ended:
			if !errors.Is(err, providers.ErrUnanswered) {
				t.Errorf("%v", err)
			}
			if got := r.read(n.Node.ID); got.State != zkmodel.NodeFailed || !got.Unanswered() {
				t.Errorf("node is %s, unanswered %t", got.State, got.Unanswered())
			}
			r.calls("create")
			return
		case <-time.After(10 * time.Millisecond):
			r.searches.End(func(request string) bool { return request == r.order.Request.ID })
		}
	}
}

// Mistake: an acceptance that teaches more than once, or without having been a trial: the
// limit of a cloud that is full would grow by itself.
func TestTrialTeachesOnce(t *testing.T) {
	t.Parallel()
	for kind, want := range map[lesson.Kind]int{lesson.Trial: 1, lesson.Proven: 0} {
		r := newRoom(t, &sky{wait: func(int) error { time.Sleep(400 * time.Millisecond); return nil }}) //nolint:forbidigo // a cloud that is slow
		r.order.Asked.Kind = kind
		n := r.building()
		if err := r.Bring(t.Context(), r.order, n); err != nil {
			t.Fatal(err)
		}
		if len(r.teacher.accepted) != want {
			t.Errorf("%v: taught %q", kind, r.teacher.accepted)
		}
		if r.steps[1] != step.Noted { // it took longer than a moment
			t.Errorf("steps %q", r.steps)
		}
	}
}

// Mistake: an image that the cloud does not have that is tried again by the same launch.
func TestImageThatIsGoneIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{create: first(1, providers.ErrNotFound)})
	n := r.building()
	if err := r.Bring(t.Context(), r.order, n); err != nil {
		t.Fatal(err)
	}
	if want := []string{"build 0000000001", "build 0000000000"}; !slices.Equal(r.sky.images, want) {
		t.Errorf("asked for %q, want %q", r.sky.images, want)
	}
}

// Mistake: a launch for stock that is gone on with although its request is there, or in a
// pool that is not ours; and a node of it that stays with the request that is gone.
func TestLaunchForStockGoesOn(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{})
	kept := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, State: zkmodel.RequestPending}
	if err := r.Store.CreateRequest(t.Context(), "100", kept); err != nil {
		t.Fatal(err)
	}
	of := r.node("small", func(n *zkmodel.Node) { n.AllocatedTo = kept.ID })
	elsewhere := r.node("small", func(n *zkmodel.Node) { n.Pool = "theirs" })
	if err := r.Adopt(t.Context(), of.Lock, of.Node); !errors.Is(err, inflight.ErrOutdated) {
		t.Errorf("its request is there: %v", err)
	}
	if err := r.Adopt(t.Context(), elsewhere.Lock, elsewhere.Node); !errors.Is(err, zkmodel.ErrConflict) {
		t.Errorf("another's pool: %v", err)
	}
	r.calls()
	fresh, begun, imageless := r.node("small"), r.building(), r.node("imageless")
	for _, n := range []*Run{fresh, begun, imageless} {
		if err := r.Adopt(t.Context(), n.Lock, n.Node); err != nil {
			t.Error(err)
		}
	}
	r.calls("create", "wait vm1", "create", "wait vm3")
	for _, n := range []*Run{fresh, begun} {
		if got := r.read(n.Node.ID); got.State != zkmodel.NodeReady || got.AllocatedTo != "" || got.Launcher != r.order.Pool.ID {
			t.Errorf("node %+v", got)
		}
	}
	if got := r.read(imageless.Node.ID); got.State != zkmodel.NodeDeleting {
		t.Errorf("without an image it is %s", got.State)
	}
}

// Mistake: a static machine that is dead, or configured no more, and is given away.
func TestStaticMachineMustAnswer(t *testing.T) {
	t.Parallel()
	dead := configs.StaticNode{Name: "127.0.0.1", ConnectionType: "ssh", ConnectionPort: 1, HostKeyChecking: true, Timeout: 200 * time.Millisecond}
	trusted := configs.StaticNode{Name: "192.0.2.7", ConnectionType: "ssh", ConnectionPort: 22, HostKeys: []string{"key"}}
	r := newRoom(t, &sky{slots: []providers.Slot{{}}}, func(p *configs.Provider) {
		p.Pools[0].Nodes = []configs.StaticNode{dead, trusted}
	})
	of := func(m configs.StaticNode, keys ...string) *Run {
		return r.node("small", func(n *zkmodel.Node) {
			n.Hostname, n.ConnectionPort, n.Slot = m.Name, zkmodel.IntValue(m.ConnectionPort), zkmodel.IntValue(0)
			n.State, n.HostKeys = zkmodel.NodeReady, keys
		})
	}
	for name, c := range map[string]struct {
		run  *Run
		good bool
	}{
		"it is dead":               {run: of(dead)},
		"it is configured no more": {run: of(configs.StaticNode{Name: "192.0.2.9"})},
		"its keys have changed":    {run: of(trusted, "old key")},
		"it is believed":           {run: of(trusted, "key"), good: true},
	} {
		err := r.Bring(t.Context(), r.order, c.run)
		got := r.read(c.run.Node.ID)
		if c.good && (err != nil || got.State != zkmodel.NodeReady) || !c.good && (!errors.Is(err, node.ErrNoAnswer) || got.State != zkmodel.NodeDeleting) {
			t.Errorf("%s: %v, %s", name, err, got.State)
		}
	}
	r.calls()
}

// Mistake: a search that ends although nobody else would take the request.
func TestMoveOnLeavesWhatNobodyTakes(t *testing.T) {
	t.Parallel()
	l := New(Deps{})
	moved, done := l.seek(&Order{Request: &zkmodel.Request{ID: "200-1"}})
	defer done()
	l.MoveOn(&schedule.Snapshot{Requests: []*zkmodel.Request{{ID: "200-1"}, {ID: "200-2"}}})
	select {
	case <-moved:
		t.Error("it ended")
	default:
	}
	if never, _ := l.seek(&Order{Request: &zkmodel.Request{ID: "200-2"}, Gone: true}); never != nil {
		t.Error("one whose request is gone can be taken by others")
	}
}

// changed has a person write the record of a node as it is.
func (r *room) changed(n *Run) error {
	data, _, err := r.Store.Session().Get(r.t.Context(), n.Node.Path())
	if err == nil {
		_, err = r.Store.Session().Set(r.t.Context(), n.Node.Path(), data, recipe.AnyVersion)
	}
	return err
}

// Mistake: a node whose record a person changed while its machine booted counts as ready, although that was never written;
// or as a failure, by which its machine goes and its request is declined.
func TestNodeThatCouldNotBeWrittenReady(t *testing.T) {
	t.Parallel()
	s := &sky{}
	r := newRoom(t, s)
	n, stock := r.building(), r.building()
	s.wait = func(int) error { return r.changed(n) }
	if err := r.Bring(t.Context(), r.order, n); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("it ends with %v", err)
	}
	if got := r.read(n.Node.ID); n.Node.State != zkmodel.NodeBuilding || got.State != zkmodel.NodeBuilding {
		t.Errorf("the node is %s, and its record says %s", n.Node.State, got.State)
	}
	if len(r.tried) > 0 {
		t.Errorf("tried %q", r.tried)
	}
	s.wait = func(int) error { return r.changed(stock) }
	if err := r.Adopt(t.Context(), stock.Lock, stock.Node); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("one for stock ends with %v", err)
	}
	r.calls("create", "wait vm1", "create", "wait vm3")
}

// Mistake: a launch whose lock a person has ended counts as failed, and deletes a machine that another may go on with.
func TestLaunchWhoseLockWasEnded(t *testing.T) {
	t.Parallel()
	s := &sky{}
	r := newRoom(t, s)
	n := r.building()
	s.wait = func(int) error { return r.Store.Session().Delete(t.Context(), n.Lock.Path(), recipe.AnyVersion) }
	if err := r.Bring(t.Context(), r.order, n); !Lost(err) {
		t.Errorf("it ends with %v", err)
	}
	if r.calls("create", "wait vm1"); len(r.tried) > 0 {
		t.Errorf("tried %q", r.tried)
	}
}

// Mistake: a cloud counts as asked although the record that says so could not be written.
func TestCloudThatWasNotAsked(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{})
	n := r.building()
	if err := r.changed(n); err != nil {
		t.Fatal(err)
	}
	if err := r.asking(n)(t.Context()); !errors.Is(err, recipe.ErrVersion) || n.Node.Asked != 0 {
		t.Errorf("asked %v: %v", n.Node.Asked, err)
	}
}

// Mistake: what a node comes to when its launch has failed, or its machine is dead, counts as written although it is not.
func TestNodeThatCouldNotBeGivenUp(t *testing.T) {
	t.Parallel()
	s := &sky{slots: []providers.Slot{{}}}
	r := newRoom(t, s)
	failed, dead := r.building(), r.node("small", func(n *zkmodel.Node) {
		n.Hostname, n.ConnectionPort, n.Slot, n.State = "192.0.2.9", zkmodel.IntValue(22), zkmodel.IntValue(0), zkmodel.NodeReady
	})
	if err := errors.Join(r.changed(failed), r.changed(dead)); err != nil {
		t.Fatal(err)
	}
	if err := r.giveUp(t.Context(), failed, zkmodel.NodeFailed, providers.ErrNodeFailed); !errors.Is(err, recipe.ErrVersion) || failed.Node.State != zkmodel.NodeBuilding {
		t.Errorf("one that failed is %s: %v", failed.Node.State, err)
	}
	if err := r.Bring(t.Context(), r.order, dead); !errors.Is(err, node.ErrNoAnswer) || dead.Node.State != zkmodel.NodeReady {
		t.Errorf("one that is dead is %s: %v", dead.Node.State, err)
	}
}

// later is an error of a cloud that asked for a pause.
type later struct{ error }

func (later) Pause() time.Duration { return time.Hour }
func (l later) Unwrap() error      { return l.error }

// After a refusal with Retry-After the next attempt waits for as long as the cloud asked.
func TestNextAttemptWaitsAsTheCloudAsks(t *testing.T) {
	t.Parallel()
	r := newRoom(t, &sky{create: first(1, later{providers.ErrTransient})})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.Bring(ctx, r.order, r.building()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("launch ended with %v", err)
	}
	r.calls("create")
}

// Mistake: a launch makes all its attempts in a provider that cannot be used any more, so that its request does not go to another one.
func TestLaunchEndsWhenItsProviderIsUnusable(t *testing.T) {
	t.Parallel()
	s := &sky{}
	r := newRoom(t, s)
	s.create = func(int) error {
		r.order.Cloud.Told(errors.New("it does not answer"))
		return providers.ErrTransient
	}
	n := r.building()
	if err := r.Bring(t.Context(), r.order, n); !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "it does not answer") {
		t.Errorf("it ends with %v", err)
	}
	if got := r.read(n.Node.ID); got.State != zkmodel.NodeFailed {
		t.Errorf("the node is %s", got.State)
	}
	r.calls("create")
}

// Mistakes: all attempts of a request go to one availability zone; the nodes of a request end up in several.
func TestRetryChangesTheZone(t *testing.T) {
	t.Parallel()
	for alone, want := range map[bool][]string{true: {"z2", "z3", "z1"}, false: {"z2", "z2", "z2"}} {
		r := newRoom(t, &sky{create: first(2, providers.ErrTransient)}, func(p *configs.Provider) {
			p.Pools[0].AvailabilityZones = []string{"z1", "z2", "z3"}
		})
		r.order.Alone = alone
		n := r.node("small", func(n *zkmodel.Node) { n.AZ = "z2" })
		if err := errors.Join(r.Prepare(r.order, n), r.Save(t.Context(), n), r.Bring(t.Context(), r.order, n)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.sky.zones, want) {
			t.Errorf("the only node: %t: created in %q, want %q", alone, r.sky.zones, want)
		}
	}
}
