package request

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// accept is the decision that pool here takes a request: its labels are launched, but for
// those that nodes are given for.
func (r *room) accept(req *zkmodel.Request, nodes ...*zkmodel.Node) schedule.Accept {
	d := schedule.Accept{
		About: schedule.About{Request: req, Reason: "the test says so"},
		Pool:  &schedule.Pool{ID: r.here.ID, Provider: "here", Name: "main"},
	}
	for i, label := range req.NodeTypes {
		place := schedule.Place{Label: label}
		if i < len(nodes) && nodes[i] != nil {
			place.Node = nodes[i].ID
		}
		d.Places = append(d.Places, place)
	}
	return d
}

// leftAlone reports whether a request was left alone for a moment, which may be over on a busy machine.
func (r *room) leftAlone(req *zkmodel.Request) bool {
	return r.Jobs.Failures(inflight.Request(req.ID)) > 0
}

// carryOut does what is decided, and waits until it is over.
func (r *room) carryOut(decisions ...schedule.Decision) {
	r.t.Helper()
	r.CarryOut(r.t.Context(), decisions)
	r.Jobs.Wait()
}

// Mistake: an end of a launch that ends its request in the wrong way: declined, so that it
// fails for what another provider or a later moment would give it; put back, so that it
// comes to the same cloud for ever; or with nodes that nobody has and nobody deletes.
func TestHowARequestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		large   error // of the second node
		small   error // of the first
		other   bool  // another provider offers the labels
		trouble error // of the cloud
		state   zkmodel.RequestState
		decline bool
		nodes   []string
		paused  bool // it is left alone for a moment
	}{
		"all are ready":                    {state: zkmodel.RequestFulfilled, nodes: []string{"large ready allocated", "small ready allocated"}},
		"the cloud is full":                {large: providers.ErrQuota, state: zkmodel.RequestRequested, nodes: []string{"large failed allocated", "small ready"}},
		"it did not answer":                {large: providers.ErrUnanswered, state: zkmodel.RequestRequested, nodes: []string{"large failed allocated", "small ready"}},
		"a static machine is dead":         {large: node.ErrNoAnswer, state: zkmodel.RequestRequested, nodes: []string{"large failed allocated", "small ready"}, paused: true},
		"the cloud is of no use":           {large: providers.ErrUnusable, state: zkmodel.RequestRequested, nodes: []string{"large failed allocated", "small ready"}, paused: true},
		"it fails, and all have declined":  {large: providers.ErrNodeFailed, state: zkmodel.RequestFailed, decline: true, nodes: []string{"large failed allocated", "small ready"}},
		"it fails, and others may":         {large: providers.ErrNodeFailed, other: true, state: zkmodel.RequestRequested, decline: true, nodes: []string{"large failed allocated", "small ready"}},
		"it fails, and the cloud is full":  {large: providers.ErrNodeFailed, small: providers.ErrQuota, state: zkmodel.RequestFailed, decline: true, nodes: []string{"large failed allocated", "small failed allocated"}},
		"a moment's trouble":               {large: providers.ErrTransient, state: zkmodel.RequestFailed, decline: true, nodes: []string{"large failed allocated", "small ready"}},
		"a cloud's trouble, and no others": {large: providers.ErrTransient, trouble: providers.ErrUnusable, state: zkmodel.RequestRequested, nodes: []string{"large failed allocated", "small ready"}, paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.launches.fails = map[string]error{"large": c.large, "small": c.small}
			if c.other {
				r.register(r.Pools[1])
			}
			if c.trouble != nil {
				r.Clouds["here"].Told(c.trouble)
			}
			req := r.request([]string{"small", "large"})
			r.carryOut(r.accept(req))
			paused := r.leftAlone(req)
			got := r.read(req.ID)
			if got.State != c.state || got.DeclinedByPool(r.here.ID) != c.decline {
				t.Errorf("request is %s, declined by %q (%s); want %s", got.State, got.DeclinedBy, got.Reason, c.state)
			}
			if done := c.state == zkmodel.RequestFulfilled; done != (len(got.Nodes) == 2) || done == (got.Reason != "") {
				t.Errorf("it has nodes %q and reason %q", got.Nodes, got.Reason)
			}
			r.has(c.nodes...)
			if paused != c.paused {
				t.Errorf("left alone for a moment: %t, want %t", paused, c.paused)
			}
			if len(r.Lost()) > 0 {
				t.Errorf("lost %v", r.Lost())
			}
		})
	}
}

// Mistake: nodes of a request whose requestor has left that stay its own for ever; or a
// node's failure that is taken for a reason to decline what is gone.
func TestCancelledRequest(t *testing.T) {
	t.Parallel()
	for label, failed := range map[string]error{"small": nil, "large": providers.ErrNodeFailed} {
		r := newRoom(t)
		req := r.request([]string{"small", label})
		r.launches.fails = map[string]error{"large": failed}
		r.launches.busy = func(*launch.Run) { _ = r.Store.DeleteRequest(t.Context(), req.ID) } // by the first node
		r.carryOut(r.accept(req))
		if failed == nil {
			r.has("small ready", "small ready")
		} else {
			r.has("large failed allocated", "small ready")
		}
		if len(r.figures.ended) != 1 || r.figures.ended[0] != "cancelled" {
			t.Errorf("%s: counted %q", label, r.figures.ended)
		}
	}
}

// Mistake: a node for stock that stays with its request, which nobody will ever unlock; or
// a request for stock that stays.
func TestStockIsNobodys(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small"}, func(r *zkmodel.Request) { r.Requestor = schedule.MinReadyRequestor })
	r.carryOut(r.accept(req))
	r.has("small ready")
	if _, err := r.Store.Request(t.Context(), req.ID); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("request: %v", err)
	}
}

// Mistake: room taken that another launcher counts, or something left of an acceptance
// that did not come to be.
func TestAcceptanceNeedsItsQuota(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small"})
	d := r.accept(req)
	d.UsesQuota = true
	r.carryOut(d)
	r.has()
	if got := r.read(req.ID); got.State != zkmodel.RequestRequested || r.Own.Requests()[req.ID] {
		t.Errorf("request is %s, ours %t", got.State, r.Own.Requests()[req.ID])
	}
	if !r.leftAlone(req) {
		t.Error("it is not left alone for a moment")
	}
}

// Mistake: a request that is accepted although it has changed since it was decided over.
func TestAcceptanceOfWhatHasChanged(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small"})
	old := new(*req)
	lock, now, err := r.Store.LockRequest(t.Context(), req.ID)
	if err == nil {
		now.RelativePriority = 7
		err = errors.Join(r.Store.SaveRequest(t.Context(), lock, now), lock.Release(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.carryOut(r.accept(old))
	r.has()
	if got := r.read(req.ID); got.State != zkmodel.RequestRequested || got.RelativePriority != 7 {
		t.Errorf("request is %+v", got)
	}
}

// Mistake: a ready node that is given to two requests; and, where one of several cannot be
// had, others that are kept from everybody, or new ones that nobody deletes.
func TestReadyNodesAreTaken(t *testing.T) {
	t.Parallel()
	free := func(*zkmodel.Node) {}
	for name, c := range map[string]struct {
		change func(*zkmodel.Node) // of the second
		state  zkmodel.RequestState
		nodes  []string
	}{
		"both are free":      {change: free, state: zkmodel.RequestFulfilled, nodes: []string{"large ready allocated", "small ready allocated", "small ready allocated"}},
		"one is another's":   {change: func(n *zkmodel.Node) { n.AllocatedTo = "200-7" }, state: zkmodel.RequestRequested, nodes: []string{"large deleting allocated", "small ready", "small ready allocated"}},
		"one is being used":  {change: func(n *zkmodel.Node) { n.State = zkmodel.NodeInUse }, state: zkmodel.RequestRequested, nodes: []string{"large deleting allocated", "small in-use", "small ready"}},
		"one is of no label": {change: func(n *zkmodel.Node) { n.Type = zkmodel.Strings{"medium"} }, state: zkmodel.RequestRequested, nodes: []string{"large deleting allocated", "medium ready", "small ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			req := r.request([]string{"small", "small", "large"})
			r.carryOut(r.accept(req, r.node(zkmodel.NodeReady, "small"), r.node(zkmodel.NodeReady, "small", c.change)))
			if got := r.read(req.ID); got.State != c.state || len(got.DeclinedBy) > 0 {
				t.Errorf("request is %s, declined by %q", got.State, got.DeclinedBy)
			}
			r.has(c.nodes...)
		})
	}
}

// Mistake: a request that could not be settled and is in nobody's hands until a search a
// minute later.
func TestWhatCannotBeSettledIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small", "large"})
	var steps []step.Step
	r.launches.busy = func(n *launch.Run) { // somebody deletes the record of one
		if n.Place.Label == "large" {
			_ = n.Lock.DeleteTree(t.Context(), n.Node.Path())
		}
	}
	r.Step = func(at step.Step) { steps = append(steps, at) }
	r.carryOut(r.accept(req))
	if got := r.read(req.ID); got.State == zkmodel.RequestFulfilled || slices.Contains(steps, step.Fulfilled) {
		t.Errorf("request is %s after %q", got.State, steps)
	} else if got.State == zkmodel.RequestPending && !r.Lost()[req.ID] {
		t.Error("it is pending, unlocked and not known to be lost")
	}
}

// Mistake: a request that fails, or that launchers of other makes fail, while a launcher
// that could serve it restarts; what failed of it here that is forgotten or written.
func TestNothingIsDeclinedWhileSomebodyIsAwaited(t *testing.T) {
	t.Parallel()
	left := zkmodel.Offer{Hostname: "two", Provider: "there", Pool: "main", Labels: zkmodel.Strings{"small"}, Left: true}
	left.Stat.Mtime = time.Now()
	r := newRoom(t, func(c *configs.Config) { c.LauncherGrace = time.Hour })
	r.launches.fails = map[string]error{"small": providers.ErrNodeFailed}
	r.offers.late = []zkmodel.Offer{left} // seen after a barrier only
	declined, failed := r.request([]string{"small"}), r.request([]string{"small"})
	r.carryOut(schedule.Decline{About: schedule.About{Request: declined, Reason: "no"}, Pools: []string{r.here.ID}}, r.accept(failed))
	for _, req := range []*zkmodel.Request{declined, failed} {
		if got := r.read(req.ID); got.State != zkmodel.RequestRequested || len(got.DeclinedBy) > 0 {
			t.Errorf("request is %s, declined by %q", got.State, got.DeclinedBy)
		}
	}
	why := r.Failed([]*zkmodel.Request{declined, failed})
	if !strings.Contains(why[failed.ID][r.here.ID], "launch failed") || len(why) != 1 {
		t.Errorf("what failed here is %q", why)
	}
	if why = r.Failed(nil); len(why) > 0 {
		t.Errorf("it is remembered of requests that are gone: %q", why)
	}
}

// Mistake: a request that fails because a pool leaves between the look for whom to wait
// and the look whether all have declined. Whenever it leaves, the request waits.
func TestPoolLeavesDuringDecline(t *testing.T) {
	t.Parallel()
	for looks := range 4 {
		r := newRoom(t, func(c *configs.Config) { c.LauncherGrace = time.Hour })
		r.register(r.Pools[1])
		there := r.tree.components[1]
		r.offers.known = []zkmodel.Offer{{Hostname: there.Hostname, Provider: there.ProviderName, Pool: there.PoolName, Labels: zkmodel.Strings{"small"}}}
		req := r.request([]string{"small"})
		r.tree.looks, r.tree.leave = 0, looks+1
		r.carryOut(schedule.Decline{About: schedule.About{Request: req, Reason: "no"}, Pools: []string{r.here.ID}})
		if got := r.read(req.ID); got.State != zkmodel.RequestRequested {
			t.Errorf("it leaves after %d looks: the request is %s", looks+1, got.State)
		}
	}
}

// Mistake: a decline that forgets what others have declined, or that is written again in
// each round until the tree shows it; a request that fails while a pool has not declined.
func TestDecline(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.register(r.Pools[1])
	req := r.request([]string{"small"}, func(r *zkmodel.Request) { r.DeclinedBy = zkmodel.Strings{"another"} })
	r.carryOut(schedule.Decline{About: schedule.About{Request: req, Reason: "too large"}, Pools: []string{r.here.ID}})
	got := r.read(req.ID)
	if got.State != zkmodel.RequestRequested || !slices.Equal(got.DeclinedBy, []string{"another", r.here.ID}) || got.Reason != "too large" {
		t.Errorf("request is %+v", got)
	}
	all := schedule.Decline{About: schedule.About{Request: req, Reason: "too large"}, Pools: []string{r.here.ID, r.Pools[1].ID, "another"}}
	r.carryOut(all) // the tree does not show the first yet
	if again := r.read(req.ID); len(again.DeclinedBy) != 2 {
		t.Errorf("declined again by %q", again.DeclinedBy)
	}
	r.Own.Drop(req.ID)
	r.carryOut(all)
	if got = r.read(req.ID); got.State != zkmodel.RequestFailed || len(got.DeclinedBy) != 3 {
		t.Errorf("all have declined: %s, by %q", got.State, got.DeclinedBy)
	}
	if want := []string{"declined: requested", "declined: failed"}; !slices.Equal(r.figures.ended, want) {
		t.Errorf("counted %q", r.figures.ended)
	}
}
