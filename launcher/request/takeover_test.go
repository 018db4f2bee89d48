package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// takeOver carries out that a request is taken over, with such nodes in sight.
func (r *room) takeOver(req *zkmodel.Request, nodes ...*zkmodel.Node) {
	r.t.Helper()
	r.tree.nodes = nodes
	r.carryOut(schedule.Reclaim{About: schedule.About{Request: req, Reason: "the test says so"}})
}

// waiting makes a pending request of some labels that nobody has.
func (r *room) waiting(labels ...string) *zkmodel.Request {
	req := r.request(labels, func(r *zkmodel.Request) { r.State, r.Nodes = zkmodel.RequestPending, zkmodel.Strings{"7"} })
	r.orphans.Mark(req.ID)
	return req
}

// begunAgain checks that a request waits again, is told of, and that nothing was brought for it.
func (r *room) begunAgain(req *zkmodel.Request) {
	r.t.Helper()
	if got := r.read(req.ID); got.State != zkmodel.RequestRequested || len(got.Nodes) > 0 || r.Lost()[req.ID] || len(r.launches.brought) > 0 {
		r.t.Errorf("request is %s with nodes %q, lost %t, brought %q", got.State, got.Nodes, r.Lost()[req.ID], r.launches.brought)
	}
	if !r.log.has("begins again: request="+req.ID) || r.log.has("given up late") {
		r.t.Errorf("logged:\n%s", r.log.text.String())
	}
}

// Mistake: what is no node of a lost request keeps it from going on, or is taken with it; two labels that are equal get one node; what
// is done stays in our hands; the second pool of ours serves what the first one began.
func TestTakeOverTakesItsNodes(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small", "small")
	in := func(n *zkmodel.Node) { n.Provider, n.AllocatedTo, n.Launcher = "there", req.ID, "of one that is gone" }
	broken, others := r.node(zkmodel.NodeReady, "small", in), r.node(zkmodel.NodeReady, "small", func(n *zkmodel.Node) { n.AllocatedTo = "200-7" })
	parted := r.node(zkmodel.NodeFailed, "small", in, func(n *zkmodel.Node) { n.Asked = zkmodel.EpochOf(time.Now()) })
	broken.Broken = errors.New("no JSON")
	first, second := r.node(zkmodel.NodeReady, "small", in), r.node(zkmodel.NodeBuilding, "small", in)
	mine := false
	r.launches.busy = func(n *launch.Run) { mine = r.Own.Mine(first.ID) && r.Own.Mine(second.ID) }
	r.takeOver(req, broken, others, parted, first, second)
	got := r.read(req.ID)
	if slices.Sort(got.Nodes); got.State != zkmodel.RequestFulfilled || !slices.Equal(got.Nodes, []string{first.ID, second.ID}) || !mine {
		t.Errorf("request is %s with nodes %q; ours meanwhile: %t", got.State, got.Nodes, mine)
	}
	if n, err := r.Store.Node(t.Context(), second.ID); err != nil || n.Launcher != r.Pools[1].ID {
		t.Errorf("the launcher of what was begun is %q: %v", n.Launcher, err)
	}
	if !r.log.has(fmt.Sprintf("step: at=%q", step.Resumed)) || !r.log.has("goes on: request="+req.ID) || r.log.has("given up late") || slices.Contains(r.launches.alone, true) {
		t.Errorf("alone %t, logged:\n%s", r.launches.alone, r.log.text.String())
	}
	r.letGo(req.ID, first.ID, second.ID)
}

// letGo checks that what is done leaves our hands.
func (r *room) letGo(request string, nodes ...string) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	var work sync.WaitGroup
	work.Go(func() { r.Own.Retire(ctx) })
	defer func() { stop(); work.Wait() }()
	zktest.Eventually(r.t, func() bool {
		return !r.Own.Requests()[request] && !slices.ContainsFunc(nodes, r.Own.Mine)
	}, "request and nodes are let go")
}

// Mistake: what a cloud refuses to a launch that was taken over is taken for an answer of long ago, and teaches nothing.
func TestTakeOverIsOfThisRound(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.Clouds["here"].Heed(lesson.Lesson{Number: 9, Round: 7})
	req := r.waiting("small")
	r.takeOver(req, r.node(zkmodel.NodeBuilding, "small", of(req)))
	if !slices.Equal(r.launches.rounds, []int{7}) {
		t.Errorf("launched in the rounds %v", r.launches.rounds)
	}
}

// Mistake: the only node of a request is written twice, as it is one of several when its launch goes on elsewhere.
func TestTakeOverOfOneNode(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small")
	r.takeOver(req, r.node(zkmodel.NodeBuilding, "small", of(req)))
	if got := r.read(req.ID); got.State != zkmodel.RequestFulfilled || !slices.Equal(r.launches.alone, []bool{true}) {
		t.Errorf("request is %s, alone %t", got.State, r.launches.alone)
	}
}

// Mistake: a request is gone on with that has more nodes than labels, and one stays its own for ever; or none, or only those of
// a pool that is not ours.
func TestTakeOverOfWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small")
	r.takeOver(req, r.node(zkmodel.NodeReady, "small", of(req)), r.node(zkmodel.NodeReady, "small", of(req)))
	r.begunAgain(req)
	r.has("small ready", "small ready")
	r.letGo(req.ID)

	r = newRoom(t)
	none := r.waiting()
	r.takeOver(none)
	r.begunAgain(none)

	r = newRoom(t)
	theirs := r.waiting("small")
	n := r.node(zkmodel.NodeInit, "small", of(theirs), func(n *zkmodel.Node) { n.Pool = "theirs" })
	r.takeOver(theirs, n)
	r.begunAgain(theirs)
	if now, err := r.Store.Node(t.Context(), n.ID); err != nil || now.State != zkmodel.NodeDeleting || now.Reason != "its launcher is gone" {
		t.Errorf("its node is %s (%s): %v", now.State, now.Reason, err)
	}
}

// Mistake: a node that a living launcher has, that is gone, or that is another request's by now, as the tree shows late, is taken,
// freed, or keeps the request from waiting again.
func TestTakeOverOfNodesThatHaveChanged(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small")
	n := r.node(zkmodel.NodeReady, "small", of(req))
	lock, now, err := r.Store.LockNode(t.Context(), n.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	r.takeOver(req, n)
	r.begunAgain(req)
	if again, err := r.Store.Node(t.Context(), n.ID); err != nil || again.AllocatedTo != req.ID {
		t.Errorf("the node in other hands is of %q: %v", again.AllocatedTo, err)
	}

	req = r.waiting("small")
	now.AllocatedTo = "200-7"
	if err := errors.Join(r.Store.SaveNode(t.Context(), lock, now), lock.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	seen := *now
	seen.AllocatedTo = req.ID
	r.takeOver(req, &seen)
	r.begunAgain(req)
	if again, err := r.Store.Node(t.Context(), n.ID); err != nil || again.AllocatedTo != "200-7" {
		t.Errorf("another's node is of %q: %v", again.AllocatedTo, err)
	}

	req = r.waiting("small")
	seen.ID, seen.AllocatedTo = "0000009999", req.ID
	r.takeOver(req, &seen)
	r.begunAgain(req)
}

// Mistake: a lost request is forgotten, or waits again, although ZooKeeper does not answer: its nodes would be nobody's.
func TestTakeOverWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small")
	n := r.node(zkmodel.NodeReady, "small", of(req))
	woken := r.woken.Load()
	r.tree.barrier = func() error { return errors.New("ZooKeeper is down") }
	r.takeOver(req, n)
	if !r.Lost()[req.ID] || r.woken.Load() == woken {
		t.Error("it is not lost any more, or nobody is told")
	}
	r.orphans.Forget(req.ID)
	r.Own.Drop(req.ID)
	r.tree.barrier = nil
	ctx, stop := context.WithCancel(t.Context())
	r.tree.nodes = []*zkmodel.Node{n}
	r.tree.barrier = func() error { stop(); return nil } // the nodes cannot be locked
	r.CarryOut(ctx, []schedule.Decision{schedule.Reclaim{About: schedule.About{Request: req}}})
	r.Jobs.Wait()
	if got, err := r.Store.Request(t.Context(), req.ID); err != nil || got.State != zkmodel.RequestPending || !r.Lost()[req.ID] {
		t.Errorf("request is %s, lost %t: %v", got.State, r.Lost()[req.ID], err)
	}
	r.Own.Drop(req.ID)
	r.client.Close()
	r.takeOver(req, n)
	if !r.Lost()[req.ID] {
		t.Error("without a session: it is not lost any more")
	}
}

// Mistake: that nobody can say whether a request is lost is not told, or is told where all is well, or of a session that has ended.
func TestWhatCannotBeTold(t *testing.T) {
	t.Parallel()
	const message = "Cannot tell whether a request is lost"
	r := newRoom(t)
	r.tree.requests = []*zkmodel.Request{r.waiting("small")}
	if r.FindOrphans(t.Context()); r.log.has(message) {
		t.Error("told where all is well")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r.FindOrphans(ctx); !r.log.has(message) {
		t.Error("not told")
	}
	r = newRoom(t)
	r.tree.requests = []*zkmodel.Request{r.waiting("small")}
	r.client.Close()
	if r.FindOrphans(t.Context()); r.log.has(message) {
		t.Error("told although the session has ended")
	}
}

// Mistake: a request of ours that goes on without a node whose machine may yet be made counts as that of who serves its cloud.
func TestPartedNodesAreNoReason(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.waiting("small")
	r.tree.requests = []*zkmodel.Request{req}
	r.orphans.Forget(req.ID)
	r.tree.components = append(r.tree.components, &zkmodel.Component{ID: "x", ProviderName: "elsewhere"})
	parted := r.node(zkmodel.NodeFailed, "small", of(req), func(n *zkmodel.Node) {
		n.Provider, n.Asked = "elsewhere", zkmodel.EpochOf(time.Now())
	})
	for what, nodes := range map[string][]*zkmodel.Node{"parted": {parted}, "of our own cloud": {r.node(zkmodel.NodeBuilding, "small", of(req))}} {
		r.tree.nodes = nodes
		if r.FindOrphans(t.Context()); !r.Lost()[req.ID] {
			t.Errorf("%s: it is not found", what)
		}
		r.orphans.Forget(req.ID)
	}
}

// Mistake: an acceptance that is undone forgets a new node that it could not lock, or does not say why what it made goes.
func TestAcceptanceIsUndone(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small", "large"})
	r.carryOut(r.accept(req, r.node(zkmodel.NodeInUse, "small")))
	at := slices.IndexFunc(r.Own.Nodes(), func(n *zkmodel.Node) bool { return n.Type[0] == "large" })
	if n := r.Own.Nodes()[at]; n.State != zkmodel.NodeDeleting || n.Reason != "its request is given back" {
		t.Errorf("the new node is %s (%s)", n.State, n.Reason)
	}
	if r.read(req.ID); r.Lost()[req.ID] || r.log.has("given up late") {
		t.Errorf("lost %t, logged:\n%s", r.Lost()[req.ID], r.log.text.String())
	}

	r = newRoom(t)
	req = r.request([]string{"small", "large"})
	var lock *recipe.Held
	r.Step = func(at step.Step) {
		if at != step.Accepted {
			return
		}
		for _, n := range r.Own.Nodes() {
			var err error
			if lock, _, err = r.Store.LockNode(t.Context(), n.ID, ""); err != nil {
				t.Error(err)
			}
		}
	}
	r.carryOut(r.accept(req, r.node(zkmodel.NodeInUse, "small")))
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if got := r.read(req.ID); got.State != zkmodel.RequestPending || !r.Lost()[req.ID] {
		t.Errorf("a node was in other hands: the request is %s, lost %t", got.State, r.Lost()[req.ID])
	}
}
