package request

import (
	"errors"
	"testing"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// late is a clock by which all that was waited for is over at once.
type late struct{}

func (late) Now() time.Time { return time.Now() }

func (late) AfterFunc(_ time.Duration, f func()) clock.Stopper {
	f()
	return late{}
}

func (late) Stop() bool { return false }

// Mistake: that the locks of a request could not be given up in time is told to nobody, or also where the session, and so the
// locks, have ended; or a request stays in our hands by that.
func TestLocksThatAreGivenUpLate(t *testing.T) {
	t.Parallel()
	const message = "Locks of a request are given up late"
	release := func(r *room, atLast func()) *zkmodel.Request {
		req := r.request([]string{"small"})
		lock, now, err := r.Store.LockRequest(t.Context(), req.ID)
		if err != nil {
			t.Fatal(err)
		}
		r.Own.Take(req.ID)
		atLast()
		r.releaseLocks(clock.With(t.Context(), clock.From(late{})), &run{Order: launch.Order{Request: now}, lock: lock})
		return req
	}
	r := newRoom(t)
	var req *zkmodel.Request
	for range 50 { // the server may be quicker than a busy machine
		if req = release(r, func() {}); r.log.has(message) {
			break
		}
	}
	if !r.log.has(message) {
		t.Error("nothing is told")
	}
	r.letGo(req.ID)
	r = newRoom(t)
	if release(r, r.client.Close); r.log.has(message) {
		t.Error("told although the session has ended")
	}
}

// Mistake: a node whose launch has failed is written again as its request is given back, over what was written of it since.
func TestWhatHasFailedIsWrittenOnce(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small", "large"})
	r.launches.fails = map[string]error{"large": providers.ErrQuota}
	var failed *launch.Run
	r.launches.busy = func(n *launch.Run) {
		if n.Place.Label == "large" {
			failed = n
		}
	}
	r.carryOut(r.accept(req))
	n, err := r.Store.Node(t.Context(), failed.Node.ID)
	if err != nil || n.State != zkmodel.NodeFailed {
		t.Fatalf("node is %s: %v", n.State, err)
	}
	if want := r.launches.written["large"]; n.Stat.Version != want {
		t.Errorf("its record is of version %d, and was of %d as it failed", n.Stat.Version, want)
	}
}

// Mistake: a request that gives way to an older one keeps its ready nodes for others, so that what the older one waits for
// stays taken; or these go without saying why; or they go also when a cloud is full, where they could serve.
func TestNodesOfARequestThatGivesWayGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    error
		state  zkmodel.NodeState
		reason string
	}{
		{providers.ErrGivesWay, zkmodel.NodeDeleting, "its request gives way to an older one"},
		{providers.ErrQuota, zkmodel.NodeReady, ""},
	} {
		r := newRoom(t)
		req := r.request([]string{"small", "large"})
		r.launches.fails = map[string]error{"large": c.why}
		var small string
		r.launches.busy = func(n *launch.Run) {
			if n.Place.Label == "small" {
				small = n.Node.ID
			}
		}
		r.carryOut(r.accept(req))
		n, err := r.Store.Node(t.Context(), small)
		if err != nil || n.State != c.state || n.Reason != c.reason || n.AllocatedTo != "" {
			t.Errorf("%v: the ready node is %s for %q, by %q: %v", c.why, n.State, n.AllocatedTo, n.Reason, err)
		}
		if got := r.read(req.ID); got.State != zkmodel.RequestRequested {
			t.Errorf("%v: its request is %s: %s", c.why, got.State, got.Reason)
		}
	}
}

// Mistake: what could not be written of a node as it was given back counts as written: its tenant has room that it does not have.
func TestNodeThatCouldNotBeGivenBackCounts(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small", "large"}, func(req *zkmodel.Request) { req.TenantName = "one" })
	r.launches.fails = map[string]error{"large": providers.ErrQuota}
	small := make(chan string, 1)
	r.launches.busy = func(n *launch.Run) {
		if n.Place.Label == "small" {
			small <- n.Node.Path()
			return
		}
		if err := r.writtenAgain(<-small); err != nil {
			t.Error(err)
		}
	}
	r.carryOut(r.accept(req))
	for _, n := range r.Own.Nodes() {
		if n.TenantName != "one" {
			t.Errorf("node %s of label %s, %s, counts for tenant %q", n.ID, n.Type[0], n.State, n.TenantName)
		}
	}
}

// Mistake: nobody hears that a node could not be given back.
func TestNodeThatCouldNotBeGivenBackIsTold(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	lock, n, err := r.Store.LockNode(t.Context(), r.node(zkmodel.NodeReady, "small").ID, "")
	if err = errors.Join(err, r.rewrite(n.Path())); err != nil {
		t.Fatal(err)
	}
	err = r.freeNodes(t.Context(), &run{nodes: []*launch.Run{{Node: n, Lock: lock}}})
	if !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("it was changed meanwhile, and what is told is %v", err)
	}
}

// rewrite has a person write a record as it is.
func (r *room) rewrite(path string) error {
	data, _, err := r.Store.Session().Get(r.t.Context(), path)
	if err == nil {
		_, err = r.Store.Session().Set(r.t.Context(), path, data, recipe.AnyVersion)
	}
	return err
}

// writtenAgain is rewrite of a node's record, once it is ready.
func (r *room) writtenAgain(path string) error {
	for {
		data, stat, err := r.Store.Session().Get(r.t.Context(), path)
		if err != nil {
			return err
		}
		if zkmodel.DecodeNode("", data, stat).State == zkmodel.NodeReady {
			return r.rewrite(path)
		}
		<-time.After(time.Millisecond)
	}
}

// Mistake: a request is declined, or fails, because a person has changed the record of a node that is being launched for it.
func TestLaunchWhoseRecordWasChangedIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		large error
		state zkmodel.RequestState
		lost  bool
	}{
		"its record was changed":                 {recipe.ErrVersion, zkmodel.RequestPending, true},
		"its lock was ended":                     {recipe.ErrFenceLost, zkmodel.RequestPending, true},
		"it is dead, and its record was changed": {errors.Join(node.ErrNoAnswer, recipe.ErrVersion), zkmodel.RequestRequested, false},
	} {
		r := newRoom(t)
		req := r.request([]string{"small", "large"})
		r.launches.fails = map[string]error{"large": c.large}
		r.carryOut(r.accept(req))
		if got := r.read(req.ID); got.State != c.state || len(got.DeclinedBy) > 0 || r.Lost()[req.ID] != c.lost {
			t.Errorf("%s: the request is %s, declined by %q, lost %t", name, got.State, got.DeclinedBy, r.Lost()[req.ID])
		}
	}
}

// Mistake: a request that cannot be put back, as a person has changed its record, is pending and nobody's until the next search.
func TestRequestThatCouldNotBePutBackIsLost(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small"})
	r.launches.fails = map[string]error{"small": providers.ErrQuota}
	r.launches.busy = func(*launch.Run) {
		if err := r.rewrite(req.Path()); err != nil {
			t.Error(err)
		}
	}
	r.carryOut(r.accept(req))
	if got := r.read(req.ID); got.State != zkmodel.RequestPending || !r.Lost()[req.ID] {
		t.Errorf("the request is %s, lost %t", got.State, r.Lost()[req.ID])
	}
}

// Mistake: ready nodes of a request that gives way stay with it, because the record of another of its nodes was changed meanwhile.
func TestNodesOfALostRequestThatGivesWayGo(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small", "large", "third"})
	r.launches.fails = map[string]error{"large": recipe.ErrVersion, "third": providers.ErrGivesWay}
	r.carryOut(r.accept(req))
	r.has("large failed allocated", "small deleting", "third failed allocated")
	if !r.Lost()[req.ID] {
		t.Error("the request is not known to be lost")
	}
}
