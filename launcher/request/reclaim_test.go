package request

import (
	"errors"
	"slices"
	"testing"

	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// lost makes a request that is pending and unlocked, of two labels, and lets it be known.
func (r *room) lost() *zkmodel.Request {
	req := r.request([]string{"small", "large"}, func(r *zkmodel.Request) { r.State = zkmodel.RequestPending })
	r.orphans.Mark(req.ID)
	return req
}

// reclaim takes over a request, whose nodes the tree shows once it has caught up.
func (r *room) reclaim(req *zkmodel.Request, nodes ...*zkmodel.Node) *zkmodel.Request {
	r.t.Helper()
	r.tree.barrier = func() error { r.tree.nodes = nodes; return nil }
	r.carryOut(schedule.Reclaim{About: schedule.About{Request: req, Reason: "the test says so"}})
	return r.read(req.ID)
}

func of(req *zkmodel.Request) func(*zkmodel.Node) {
	return func(n *zkmodel.Node) { n.AllocatedTo = req.ID }
}

// Mistake: a launch that begins anew although another launcher had come far, and so makes
// a second machine; or that takes what has begun for new.
func TestWorkOfALauncherThatIsGoneGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		large   zkmodel.NodeState
		brought []string
	}{
		"it had not begun": {zkmodel.NodeInit, []string{"large", "small"}},
		"it was launching": {zkmodel.NodeBuilding, []string{"again large", "small"}},
		"it was done":      {zkmodel.NodeReady, []string{"large", "small"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			req := r.lost()
			got := r.reclaim(req, r.node(c.large, "large", of(req)), r.node(zkmodel.NodeReady, "small", of(req)))
			if got.State != zkmodel.RequestFulfilled || len(got.Nodes) != 2 || r.Lost()[req.ID] {
				t.Errorf("request is %s with nodes %q, lost %t", got.State, got.Nodes, r.Lost()[req.ID])
			}
			r.has("large ready allocated", "small ready allocated")
			if slices.Sort(r.launches.brought); !slices.Equal(r.launches.brought, c.brought) {
				t.Errorf("brought %q, want %q", r.launches.brought, c.brought)
			}
		})
	}
}

// Mistake: a request that cannot be gone on with and stays pending, or takes with it the
// nodes that others could use; or a machine that is forgotten.
func TestRequestThatCannotGoOnBeginsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		large func(*zkmodel.Node)
		nodes []string
	}{
		"a node is missing":      {nil, []string{"small ready"}},
		"a node has failed":      {func(n *zkmodel.Node) { n.State = zkmodel.NodeFailed }, []string{"large failed allocated", "small ready"}},
		"a pool is not ours":     {func(n *zkmodel.Node) { n.Pool = "theirs" }, []string{"large building allocated", "small ready"}},
		"one was never begun":    {func(n *zkmodel.Node) { n.State, n.Pool = zkmodel.NodeInit, "theirs" }, []string{"large deleting allocated", "small ready"}},
		"a node is of no label":  {func(n *zkmodel.Node) { n.Type = zkmodel.Strings{"medium"} }, []string{"medium building allocated", "small ready"}},
		"providers are mixed up": {func(n *zkmodel.Node) { n.Provider = "there" }, []string{"large building allocated", "small ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			req := r.lost()
			nodes := []*zkmodel.Node{r.node(zkmodel.NodeReady, "small", of(req))}
			if c.large != nil {
				nodes = append(nodes, r.node(zkmodel.NodeBuilding, "large", of(req), c.large))
			}
			got := r.reclaim(req, nodes...)
			if got.State != zkmodel.RequestRequested || len(got.Nodes) > 0 || r.Lost()[req.ID] {
				t.Errorf("request is %s with nodes %q, lost %t", got.State, got.Nodes, r.Lost()[req.ID])
			}
			r.has(c.nodes...)
			if len(r.launches.brought) > 0 {
				t.Errorf("brought %q", r.launches.brought)
			}
		})
	}
}

// Mistake: a request taken from a launcher that has it, or one that is asked about again
// and again although it is done.
func TestRequestThatIsNotLostIsLeft(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	held, done := r.lost(), r.request([]string{"small"}, func(r *zkmodel.Request) { r.State = zkmodel.RequestFulfilled })
	r.orphans.Mark(done.ID)
	lock, _, err := r.Store.LockRequest(t.Context(), held.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.carryOut(
		schedule.Reclaim{About: schedule.About{Request: held, Reason: "it seemed lost"}},
		schedule.Reclaim{About: schedule.About{Request: done, Reason: "it seemed lost"}})
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := r.read(held.ID), r.read(done.ID); a.State != zkmodel.RequestPending || b.State != zkmodel.RequestFulfilled {
		t.Errorf("they are %s and %s", a.State, b.State)
	}
	if len(r.Lost()) > 0 {
		t.Errorf("still thought lost: %v", r.Lost())
	}
}

// Mistake: a view that has not caught up taken for all that there is: nodes that the dead
// launcher made would be forgotten, and their machines leak.
func TestReclaimWaitsForTheView(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req, down := r.lost(), errors.New("ZooKeeper is down")
	r.tree.barrier = func() error { return down }
	r.carryOut(schedule.Reclaim{About: schedule.About{Request: req, Reason: "the test says so"}})
	if got := r.read(req.ID); got.State != zkmodel.RequestPending || !r.Lost()[req.ID] {
		t.Errorf("request is %s, lost %t", got.State, r.Lost()[req.ID])
	}
}

// Mistake: a pending request that is locked, or whose nodes another launcher serves, that
// is taken for lost; and one that is lost that is not found.
func TestLostRequestsAreFound(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	pending := func(r *zkmodel.Request) { r.State = zkmodel.RequestPending }
	orphan, held, theirs := r.request([]string{"small"}, pending), r.request([]string{"small"}, pending), r.request([]string{"small"}, pending)
	lock, _, err := r.Store.LockRequest(t.Context(), held.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release(t.Context()) }()
	r.tree.requests = []*zkmodel.Request{orphan, held, theirs}
	r.tree.components = append(r.tree.components, &zkmodel.Component{ID: "x", ProviderName: "elsewhere"})
	r.tree.nodes = []*zkmodel.Node{r.node(zkmodel.NodeBuilding, "small", of(theirs), func(n *zkmodel.Node) { n.Provider = "elsewhere" })}
	r.FindOrphans(t.Context())
	if lost := r.Lost(); len(lost) != 1 || !lost[orphan.ID] {
		t.Errorf("lost are %v, want %s", lost, orphan.ID)
	}
	r.tree.components = r.tree.components[:1] // nobody serves that provider
	r.FindOrphans(t.Context())
	if lost := r.Lost(); len(lost) != 2 || !lost[theirs.ID] {
		t.Errorf("lost are %v, want %s too", lost, theirs.ID)
	}
}

// Mistake: a machine that exists already counts as launched once its request was taken over, so that its record goes when it
// is old, or its pool disabled.
func TestStaticNodeStaysStaticWhenItIsTakenOver(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.lost()
	r.launches.fails = map[string]error{"large": providers.ErrQuota} // and it is given back
	static := r.node(zkmodel.NodeReady, "small", of(req), func(n *zkmodel.Node) { n.Launcher = schedule.StaticLauncher })
	r.reclaim(req, r.node(zkmodel.NodeBuilding, "large", of(req)), static)
	n, err := r.Store.Node(t.Context(), static.ID)
	if err != nil || n.Launcher != schedule.StaticLauncher || n.AllocatedTo != "" {
		t.Errorf("it is of %q, for %q: %v", n.Launcher, n.AllocatedTo, err)
	}
}
