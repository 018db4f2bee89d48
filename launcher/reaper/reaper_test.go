package reaper

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func external(id string) func(*zkmodel.Node) {
	return func(n *zkmodel.Node) { n.ExternalID = zkmodel.TextValue(id) }
}

func allocated(request string) func(*zkmodel.Node) {
	return func(n *zkmodel.Node) { n.AllocatedTo = request }
}

// Mistake: a machine that goes before its record says so, or a record before its machine:
// a crash in between leaves a node that is given away without a machine, or a machine
// that nobody knows.
func TestMachineGoesBetweenMarkAndRecord(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeUsed, external("vm"))
	r.machine(r.here, "vm", n.ID, nil)
	r.machine(r.here, "other", "another", nil)
	r.here.removing = func(string) error {
		now, err := r.Store.Node(t.Context(), n.ID)
		if err != nil || now.State != zkmodel.NodeDeleting || now.Reason != "the test says so" {
			t.Errorf("the cloud is asked while the node is %+v %v", now, err)
		}
		return nil
	}
	if err := r.reap(n, reap.DutyRemove); err != nil {
		t.Fatal(err)
	}
	r.is(n, "")
	if want := []step.Step{step.DeleteLocked, step.DeleteMarked, step.DeleteCloud, step.Deleted}; !slices.Equal(r.steps, want) {
		t.Errorf("steps %q, want %q", r.steps, want)
	}
	if left := r.here.left(); !slices.Equal(left, []string{"other"}) || !slices.Equal(r.deleted, []string{"here"}) {
		t.Errorf("left are %q, counted %q", left, r.deleted)
	}
}

// Mistake: a search of the log for Zuul's event that does not find what became of its node.
func TestLinesNameTheEventOfTheNode(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newRoom(t, func(d *Deps) {
		d.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
		d.Request = func(id string) *zkmodel.Request { return &zkmodel.Request{ID: id, EventID: "event-of-" + id} }
	})
	n := r.node(zkmodel.NodeUsed, external("vm"), allocated("200-0000000001"))
	if err := r.reap(n, reap.DutyRemove); err != nil {
		t.Fatal(err)
	}
	const of = "event=event-of-200-0000000001 request=200-0000000001"
	for _, line := range []string{"Deleting node: ", "Node is deleted: "} {
		if !strings.Contains(log.String(), line+of) {
			t.Errorf("no %s%s in\n%s", line, of, &log)
		}
	}
}

// Mistake: a record, or a lock, that does not outlive, or outlives, a deletion that failed.
func TestRecordStaysWithItsMachine(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeUsed, external("vm"))
	r.machine(r.here, "vm", n.ID, nil)
	r.here.removing = func(string) error { return providers.ErrTransient }
	if err := r.reap(n, reap.DutyRemove); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("%v", err)
	}
	marked := r.is(n, zkmodel.NodeDeleting)
	if marked.DeleteError != providers.ErrTransient.Error() {
		t.Errorf("the record says %q", marked.DeleteError)
	}
	if err := r.reap(marked, reap.DutyRemove); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("%v", err)
	}
	if again := r.is(n, zkmodel.NodeDeleting); again.Stat.Version != marked.Stat.Version {
		t.Error("one cause is written twice")
	}
	r.here.removing = func(string) error { return nil }
	if err := r.reap(r.is(n, zkmodel.NodeDeleting), reap.DutyRemove); err != nil {
		t.Error(err)
	}
	r.is(n, "")
	if left := r.here.left(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// Mistake: acting on what the tree showed when it was decided: a node that was put on
// hold, or locked, meanwhile would be taken from whoever did so.
func TestNodeThatMovedIsLeft(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeHold, external("vm"))
	seen := new(*n)
	seen.State = zkmodel.NodeUsed
	r.outdated(seen, reap.DutyRemove)
	r.is(n, zkmodel.NodeHold)
	used := r.node(zkmodel.NodeInUse, external("vm")) // which owes the same
	seen = new(*used)
	seen.State = zkmodel.NodeReady
	r.outdated(seen, reap.DutyRemove)
	r.is(used, zkmodel.NodeInUse)
	lock, _, err := r.Store.LockNode(t.Context(), n.ID, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.reap(n, reap.DutyExpire); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("reap what is locked: %v", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	r.is(n, zkmodel.NodeHold)
	if len(r.adopted)+len(r.deleted) > 0 {
		t.Errorf("adopted %q, deleted %q", r.adopted, r.deleted)
	}
}

// Mistake: a launcher that ends, as a person has named another provider in a record since it was looked at.
func TestNodeThatNamesAnotherProviderByNow(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeUsed, external("vm"), func(n *zkmodel.Node) { n.Provider = "nowhere" })
	seen := new(*n)
	seen.Provider = "here"
	r.outdated(seen, reap.DutyRemove)
	r.is(n, zkmodel.NodeUsed)
	if err := r.reap(n, reap.DutyRemove); !errors.Is(err, zkmodel.ErrConflict) {
		t.Errorf("of a provider that nobody has: %v", err)
	}
	r.is(n, zkmodel.NodeDeleting)
}

// Mistake: a held node that goes although its hold was prolonged since it was seen.
func TestProlongedHoldIsKept(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeHold, external("vm"), func(n *zkmodel.Node) { n.StateTime, n.HoldExpiration = 2000, 180 })
	for _, change := range []func(*zkmodel.Node){
		func(n *zkmodel.Node) { n.StateTime = 1000 },    // it begins again
		func(n *zkmodel.Node) { n.HoldExpiration = 30 }, // it may be longer
	} {
		seen := new(*n)
		change(seen)
		r.outdated(seen, reap.DutyExpire)
		r.is(n, zkmodel.NodeHold)
	}
	if len(r.deleted) > 0 {
		t.Errorf("deleted %q", r.deleted)
	}
}

// Mistake: a node in launch that is deleted although its request is pending, so that
// somebody may go on with it, or not proven to be gone.
func TestLaunchIsOverBeforeItsNodeGoes(t *testing.T) {
	t.Parallel()
	unsure := errors.New("the list is old")
	for name, c := range map[string]struct {
		request zkmodel.RequestState // "" for gone
		tree    prover
		err     error
		goes    bool
	}{
		"pending":            {request: zkmodel.RequestPending, err: zkmodel.ErrConflict},
		"waits again":        {request: zkmodel.RequestRequested, goes: true},
		"gone":               {goes: true},
		"gone, but not sure": {tree: prover{unsure}, err: unsure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, func(d *Deps) { d.Tree = c.tree })
			request := "200-0000000009"
			if c.request != "" {
				request = r.request(c.request)
			}
			n := r.node(zkmodel.NodeBuilding, external("vm"), allocated(request))
			r.machine(r.here, "vm", n.ID, nil)
			if err := r.reap(n, reap.DutyRemove); !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if c.goes {
				r.is(n, "")
				return
			}
			r.is(n, zkmodel.NodeBuilding)
			if left := r.here.left(); len(left) != 1 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// Mistake: a machine that leaks since its record does not name it, or one of another
// installation, or of a later launch with the same id, that is deleted in its place.
func TestMachineWithoutANameIsFound(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeFailed, func(n *zkmodel.Node) { n.LaunchID = "mine" })
	r.machine(r.here, "mine", n.ID, map[string]string{providers.MetaLaunch: "mine"})
	r.machine(r.here, "old", n.ID, map[string]string{providers.MetaLaunch: "another"})
	r.machine(r.here, "theirs", n.ID, map[string]string{providers.MetaSite: "another"})
	if err := r.reap(n, reap.DutyRemove); err != nil {
		t.Fatal(err)
	}
	r.is(n, "")
	if left := r.here.left(); !slices.Equal(left, []string{"old", "theirs"}) {
		t.Errorf("left are %q", left)
	}
}

// Mistake: a record without a provider that goes while some cloud, or one that does not
// answer, may have its machine.
func TestNodeOfNoProviderGoesWhenNoCloudHasIt(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeDeleting, func(n *zkmodel.Node) { n.Provider = "" })
	r.there.listing = providers.ErrTransient
	if err := r.reap(n, reap.DutyRemove); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("a cloud that cannot be listed: %v", err)
	}
	r.there.listing = nil
	r.machine(r.there, "vm", n.ID, nil)
	if err := r.reap(n, reap.DutyRemove); !errors.Is(err, zkmodel.ErrConflict) {
		t.Errorf("a cloud that has it: %v", err)
	}
	r.is(n, zkmodel.NodeDeleting)
	r.there.machines, r.there.listing = nil, providers.ErrNotSupported // it makes none
	if err := r.reap(n, reap.DutyRemove); err != nil {
		t.Error(err)
	}
	r.is(n, "")
}

// Mistake: a ready node taken from its request, or one that stays with a request that is
// gone for ever.
func TestReadyNodeIsFreedWithItsRequest(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	kept, free := r.node(zkmodel.NodeReady, allocated(r.request(zkmodel.RequestFulfilled))), r.node(zkmodel.NodeReady, allocated("200-0000000009"))
	r.outdated(kept, reap.DutySettle)
	if err := r.reap(free, reap.DutySettle); err != nil {
		t.Error(err)
	}
	if r.is(kept, zkmodel.NodeReady).AllocatedTo == "" || r.is(free, zkmodel.NodeReady).AllocatedTo != "" {
		t.Error("not the one whose request is gone is free")
	}
}

// Mistake: an age that is judged by the decision and not by the record: a node that was
// given back a moment ago would be deleted as too old.
func TestAgeIsJudgedAgain(t *testing.T) {
	t.Parallel()
	r := newRoom(t, func(d *Deps) {
		d.Config = &configs.Config{Labels: []configs.Label{{Name: "small", MaxReadyAge: time.Hour}}}
		d.Now = func() time.Time { return time.Now().Add(30 * time.Minute) }
	})
	n := r.node(zkmodel.NodeReady)
	r.outdated(n, reap.DutySettle)
	r.is(n, zkmodel.NodeReady)
	r.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if err := r.reap(n, reap.DutySettle); err != nil {
		t.Error(err)
	}
	r.is(n, "")
}

// Mistake: an idle node whose machine the cloud has taken back is given to somebody, or goes without the reason; or one
// that is in use goes.
func TestNodesWhoseMachinesWereTakenBack(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.here.taken = map[string]string{"a": "spot interruption", "c": "spot interruption", "d": "spot interruption"}
	idle, well, used := r.node(zkmodel.NodeReady, external("a")), r.node(zkmodel.NodeReady, external("b")), r.node(zkmodel.NodeUsed, external("c"))
	given := r.node(zkmodel.NodeReady, external("d"), allocated(r.request(zkmodel.RequestFulfilled)))
	reasons := map[string]string{}
	r.here.machines = []providers.NodeInfo{{ExternalID: "a"}, {ExternalID: "b"}, {ExternalID: "c"}, {ExternalID: "d"}}
	ids := map[string]string{"a": idle.ID, "c": used.ID}
	var mu sync.Mutex
	r.here.removing = func(machine string) error {
		n, err := r.Store.Node(t.Context(), ids[machine])
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			reasons[machine] = n.Reason
		}
		return err
	}
	snap := &schedule.Snapshot{Now: time.Now(), Nodes: []*zkmodel.Node{idle, well, used, given}, Evicted: map[string]bool{}}
	r.Interrupted(snap)
	if !snap.Evicted[idle.ID] || len(snap.Evicted) != 1 {
		t.Errorf("kept from requests are %v", snap.Evicted)
	}
	r.Due(context.WithoutCancel(t.Context()), snap)
	r.Jobs.Wait()
	r.is(idle, "")
	r.is(used, "")
	r.is(well, zkmodel.NodeReady)
	r.is(given, zkmodel.NodeReady)
	if reasons["a"] != "spot interruption" || reasons["c"] != "spot interruption" {
		t.Errorf("the records say %v", reasons)
	}
}

// Mistake: an idle node is deleted because one list lacked its machine; or it can be had while that is
// in doubt.
func TestMissingMachineIsLookedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []error
		want    zkmodel.NodeState
	}{
		"it is gone":               {[]error{providers.ErrNotFound}, ""},
		"it is there":              {[]error{nil}, zkmodel.NodeReady},
		"it has failed":            {[]error{providers.ErrNodeFailed}, zkmodel.NodeReady},
		"an error, then gone":      {[]error{providers.ErrTransient, providers.ErrNotFound}, ""},
		"errors, then it is there": {[]error{providers.ErrTransient, providers.ErrUnusable, nil}, zkmodel.NodeReady},
	} {
		r := newRoom(t)
		n := r.node(zkmodel.NodeReady, external("a"))
		r.here.missing = map[string]schedule.Doubt{"a": {Why: "its machine is missing in the cloud", Missing: true}}
		r.here.removing = func(string) error { return nil }
		looks := 0
		r.here.looking = func() error {
			if _, _, err := r.Store.LockNode(t.Context(), n.ID, ""); !errors.Is(err, recipe.ErrLocked) {
				t.Errorf("%s: while in doubt the lock is free: %v", name, err)
			}
			looks++
			return c.answers[looks-1]
		}
		err := r.reap(n, reap.DutySettle)
		if looks != len(c.answers) || c.want == "" && err != nil || c.want != "" && !errors.Is(err, inflight.ErrOutdated) {
			t.Errorf("%s: %d looks, %v", name, looks, err)
		}
		r.is(n, c.want)
	}
}

// Mistake: a node in launch for stock that is deleted instead of gone on with.
func TestLaunchForStockIsHandedOn(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	n := r.node(zkmodel.NodeBuilding, allocated("200-0000000009"))
	if err := r.reap(n, reap.DutyAdopt); err != nil {
		t.Error(err)
	}
	r.is(n, zkmodel.NodeBuilding)
	if !slices.Equal(r.adopted, []string{n.ID}) {
		t.Errorf("adopted %q", r.adopted)
	}
}

// Mistake: an eviction that takes a node which a request has just got.
func TestOnlyIdleNodesMakeRoom(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	idle, taken, used := r.node(zkmodel.NodeReady), r.node(zkmodel.NodeReady, allocated("200-1")), r.node(zkmodel.NodeUsed)
	r.MakeRoom(t.Context(), []string{idle.ID, taken.ID, used.ID, "0000000099"}, time.Now())()
	if n := r.is(idle, zkmodel.NodeDeleting); n.Reason != "a request needs its room" {
		t.Errorf("reason %q", n.Reason)
	}
	r.is(taken, zkmodel.NodeReady)
	r.is(used, zkmodel.NodeUsed)
	r.Jobs.Wait()
	if !r.Jobs.Next().IsZero() {
		t.Error("something of that failed")
	}
}

// Mistake: a node that was told to go and is told so in each round until the tree shows
// it, so that others go too; or one that is passed over for ever as that did not work.
func TestNodesThatMakeRoomAreLeaving(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	idle := r.node(zkmodel.NodeReady)
	lock, _, err := r.Store.LockNode(t.Context(), idle.ID, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release(t.Context()) }()
	now := time.Now()
	r.MakeRoom(t.Context(), []string{idle.ID}, now)()
	leaves := func(at time.Time, nodes ...*zkmodel.Node) (bool, time.Time) {
		snap := &schedule.Snapshot{Now: at, Nodes: nodes, Evicted: map[string]bool{}}
		again := r.Leaving(snap)
		return snap.Evicted[idle.ID], again
	}
	if going, again := leaves(now, idle); !going || !again.Equal(now.Add(evictTime)) {
		t.Errorf("going %t, again %s", going, again)
	}
	if going, again := leaves(now.Add(evictTime), idle); going || !again.IsZero() {
		t.Errorf("it could not be marked: going %t, again %s", going, again)
	}
	r.MakeRoom(t.Context(), []string{idle.ID}, now)()
	marked := new(*idle)
	marked.State = zkmodel.NodeDeleting
	if going, again := leaves(now, marked); going || !again.IsZero() {
		t.Errorf("the tree shows it: going %t, again %s", going, again)
	}
}

// Mistake: nodes of a cloud that is not open yet that are tried, and fail, in each round;
// and nodes in our hands that are reaped.
func TestDueIsWhatCanBeDone(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.there.closed = errors.New("not open")
	gone := r.node(zkmodel.NodeUsed, external("a"))
	waits := r.node(zkmodel.NodeUsed, func(n *zkmodel.Node) { n.Provider = "there" })
	ours := r.node(zkmodel.NodeUsed, external("b"))
	r.Own.Note(ours)
	snap := &schedule.Snapshot{Now: time.Now(), Nodes: []*zkmodel.Node{gone, waits, ours}}
	r.Due(context.WithoutCancel(t.Context()), snap)
	r.Jobs.Wait()
	r.is(gone, "")
	r.is(waits, zkmodel.NodeUsed)
	r.is(ours, zkmodel.NodeUsed)
}
