package launcher_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// Several launchers of one pool share its requests and never overshoot its
// limits.
func TestLaunchersShareAPool(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool) // max-servers 5
	s.image()
	var most atomic.Int32
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && c.Done {
			for now := int32(s.machines("cloud")); ; { //nolint:contextcheck // a test helper
				if old := most.Load(); now <= old || most.CompareAndSwap(old, now) {
					return nil
				}
			}
		}
		return nil
	})
	for range 3 {
		s.launch()
	}
	zktest.Eventually(t, func() bool { return len(s.pools()) == 3 }, "three pools registered")
	var mu sync.Mutex
	by := map[string]int{}
	var jobs sync.WaitGroup
	for range 40 {
		jobs.Go(func() {
			err := s.zuul.Run(t.Context(), zuul.Wish{Labels: []string{"small"}, Fresh: true}, func(nodes []*zuul.Node) error {
				mu.Lock()
				defer mu.Unlock()
				by[nodes[0].Text("launcher")]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	if got := most.Load(); got > 5 {
		t.Errorf("%d machines with max-servers 5", got)
	}
	if len(by) != 3 {
		t.Errorf("served by %v, want three pools", by)
	}
	s.eventuallyEmpty()
}

// withStock is onePool with three ready nodes of small.
var withStock = strings.Replace(onePool, "{name: small}", "{name: small, min-ready: 3, max-ready-age: 3600}", 1)

// However many launchers there are, the stock is made once, and refilled.
func TestMinReadyIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(beside(withStock), "{name: tiny}", "{name: tiny, min-ready: 2}", 1))
	s.image()
	created := map[string]*atomic.Int32{}
	for name, cloud := range s.clouds {
		made := &atomic.Int32{}
		created[name] = made
		cloud.SetHook(func(_ context.Context, c fake.Call) error {
			if c.Op == fake.OpCreate && c.Done {
				made.Add(1)
			}
			return nil
		})
	}
	for range 3 {
		s.launch()
	}
	ready := func(cloud string) int {
		count := 0
		for _, n := range s.nodesAt(cloud) {
			if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
				count++
			}
		}
		return count
	}
	zktest.Eventually(t, func() bool { return ready("cloud") == 3 && ready("other") == 2 }, "both labels in stock")
	requests, err := s.store.Requests(t.Context())
	if err != nil || len(requests) != 0 {
		t.Errorf("requests are left: %v (%v)", requests, err)
	}
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if n := s.node(out.Nodes[0]); n.Requestor != "zuul-test" {
		t.Errorf("node of the stock belongs to %s", n.Requestor)
	}
	zktest.Eventually(t, func() bool { return ready("cloud") == 3 }, "the stock refilled")
	for cloud, want := range map[string]int32{"cloud": 4, "other": 2} {
		if got := created[cloud].Load(); got != want {
			t.Errorf("%d machines made in %s, want %d", got, cloud, want)
		}
	}
}

// Nodes that nobody wanted for too long end, and are made anew.
func TestMaxReadyAge(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(onePool, "{name: small}", "{name: small, max-ready-age: 3600}", 1))
	old := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.StateTime = zkmodel.EpochOf(time.Now().Add(-2 * time.Hour)) })
	young := s.orphan(zkmodel.NodeReady, nil)
	s.launch()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, old); err != nil {
		t.Fatal(err)
	}
	if n := s.node(young); n.State != zkmodel.NodeReady {
		t.Errorf("the young node is %s", n.State)
	}
}

// Nobody is given the ready nodes of a pool that is disabled, so they end at once;
// those in use are left to whoever has them.
func TestDisabledPoolDropsItsIdleNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	s.config.Providers[0].Pools[0].MaxServers = 0
	held := s.orphan(zkmodel.NodeHold, nil)
	s.orphan(zkmodel.NodeReady, nil)
	taken := s.submit(wish("small"))
	promised := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.AllocatedTo = taken })
	s.launchTwo()
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 2 }, "the idle node gone")
	if s.node(held).State != zkmodel.NodeHold || s.node(promised).State != zkmodel.NodeReady {
		t.Error("a node that is somebody's is deleted")
	}
	undisturbed()
}

// A request whose launcher dies goes on with the machine that it has.
func TestLostRequestGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	booting := make(chan struct{}, 10)
	dead := make(chan struct{})
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done {
			booting <- struct{}{}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-dead:
			}
		}
		return nil
	})
	first := s.launch()
	id := s.submit(zuul.Wish{Labels: []string{"small", "large"}})
	zktest.Await(t, booting, "a machine boots")
	zktest.Await(t, booting, "a machine boots")
	before := map[string]bool{}
	for _, n := range s.nodes() {
		before[n.ID] = true
	}
	s.launch(func(d *launcher.Deps) { d.FQDN = "other.example.org" })
	first.client.Close() // the session ends, and with it every lock
	close(dead)
	out := s.wait(id)
	if out.State != "fulfilled" || len(out.Nodes) != 2 || !before[out.Nodes[0]] || !before[out.Nodes[1]] {
		t.Errorf("%+v, want the nodes %v", out, before)
	}
	if got := s.machines("cloud"); got != 2 {
		t.Errorf("%d machines, want 2", got)
	}
	if n := s.node(out.Nodes[0]); !strings.HasPrefix(n.Launcher, "other.") {
		t.Errorf("the node's launcher is %s", n.Launcher)
	}
}

// A full pool gives up idle nodes for a request that needs their room. Catches: the quota
// is given to the other launcher before it can see which nodes go, and it makes more go.
func TestIdleNodesMakeRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool)) // max-servers 5
	s.image()
	undisturbed := s.neighbours() // with an idle node, whose room is of no use
	s.launchTwo()
	var ids []string
	for range 5 {
		ids = append(ids, s.submit(wish("small")))
	}
	for _, id := range ids {
		s.wait(id)
	}
	for _, id := range ids {
		if err := s.zuul.Cancel(id); err != nil {
			t.Fatal(err)
		}
	}
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"large", "large"}})); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 5 }, "two idle nodes gone, and no more")
	undisturbed()
}

// All nodes of a request are in one availability zone, and requests in several.
func TestOneZoneARequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(onePool, "max-servers: 5", "max-servers: 20", 1))
	s.image()
	s.launch()
	zones := map[string]bool{}
	for range 6 {
		out := s.wait(s.submit(zuul.Wish{Labels: []string{"small", "small", "large"}, Fresh: true}))
		zone := s.node(out.Nodes[0]).AZ
		for _, id := range out.Nodes {
			if got := s.node(id).AZ; got != zone || got == "" {
				t.Errorf("node %s is in %q, its sibling in %q", id, got, zone)
			}
		}
		zones[zone] = true
	}
	if len(zones) != 2 {
		t.Errorf("all requests are in %v, want both zones", zones)
	}
}

// One launcher asks a cloud for its limits; and again when the cloud was fuller
// than it said.
func TestLimitsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	var asked, full atomic.Int32
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		switch {
		case c.Op == fake.OpLimits:
			asked.Add(1)
		case c.Op == fake.OpCreate && !c.Done && full.CompareAndSwap(1, 0):
			return providers.ErrQuota
		}
		return nil
	})
	for range 3 {
		s.launch()
	}
	written := func() int64 {
		stat, _, err := s.store.Session().Exists(t.Context(), zkmodel.LimitsPath("cloud"))
		if err != nil {
			t.Fatal(err)
		}
		return stat.Czxid
	}
	zktest.Eventually(t, func() bool { return written() != 0 }, "limits in the tree")
	if got := asked.Load(); got > 4 { // each at its start, and the one for all
		t.Errorf("asked %d times", got)
	}
	first, before := written(), asked.Load()
	full.Store(1)
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool { now := written(); return now != 0 && now != first }, "limits asked for anew")
	if got := asked.Load() - before; got != 1 {
		t.Errorf("asked %d times after the refusal, want once", got)
	}
}
