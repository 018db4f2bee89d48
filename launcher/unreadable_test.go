package launcher_test

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/providers/static"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// closedClouds is a configuration of two clouds.
const closedClouds = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small, min-ready: 1}, {name: large}]
diskimages: [{name: debian, elements: [debian], username: tester}]
providers:
  - name: cloud
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 5, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]
  - name: other
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 5, labels: [{name: large, diskimage: debian, min-ram: 1024}]}]
`

// resyncs is a hook that counts the searches for leaks in a cloud.
type resyncs struct{ lists, deletions atomic.Int32 }

func (r *resyncs) hook(_ context.Context, c fake.Call) error {
	switch {
	case c.Op == fake.OpList && !c.Done:
		r.lists.Add(1)
	case c.Op == fake.OpDeleteNode && !c.Done:
		r.deletions.Add(1)
	}
	return nil
}

// patient returns after at least three resyncs, or when there are none.
func (r *resyncs) patient(resync time.Duration) {
	deadline := time.Now().Add(12 * resync)
	for first := r.lists.Load(); r.lists.Load() < first+4 && time.Now().Before(deadline); {
		<-time.After(resync / 4)
	}
}

// busySite has nodes in all states in which they live, with machines.
func busySite(t *testing.T) (s *site, parts []string) {
	t.Helper()
	s = newSite(t, closedClouds)
	s.image()
	first := s.launch()
	ctx := t.Context()
	var nodes []*zuul.Node
	for range 2 {
		for _, label := range []string{"small", "large"} {
			out := s.wait(s.submit(wish(label)))
			taken, err := s.zuul.Accept(ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, taken...)
		}
	}
	if err := s.zuul.Use(nodes...); err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Hold(time.Hour, "to be looked at", nodes[3]); err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Unlock(nodes[3]); err != nil {
		t.Fatal(err)
	}
	s.wait(s.submit(wish("large"))) // given, and not taken yet
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 3 && s.machines("other") == 3 }, "six machines, one of them in stock")
	zktest.Eventually(t, func() bool {
		return slices.ContainsFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.State == "ready" && n.AllocatedTo == "" })
	}, "a node in stock")
	first.stop()
	booting := s.stall() // one is in launch
	second := s.launch()
	s.submit(wish("small"))
	zktest.Await(t, booting, "a machine boots")
	zktest.Eventually(t, func() bool {
		return slices.ContainsFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.State == "building" && !n.ExternalID.IsNull() })
	}, "a node whose machine boots")
	second.client.Close()
	parts = []string{
		zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot, zkmodel.ImagesRoot, zkmodel.ComponentsRoot,
		zkmodel.Root, zkmodel.OwnRoot,
	}
	done := map[zkmodel.NodeState]bool{} // one of each will do
	for _, n := range s.nodes() {
		if !done[n.State] {
			done[n.State] = true
			parts = append(parts, n.Path(), zkmodel.LockPath(n.Path()))
		}
	}
	return s, parts
}

// Where a launcher may not read, nothing is deleted: neither in the tree nor in the
// clouds, by one that ran before or by one that begins.
func TestUnreadableIsNotAbsent(t *testing.T) {
	t.Parallel()
	const resync = 100 * time.Millisecond
	s, parts := busySite(t)
	var seen resyncs
	for _, part := range parts {
		t.Run(part, func(t *testing.T) {
			s.t = t                          // so that what is launched ends with the subtest
			for _, cloud := range s.clouds { // the machine that boots goes on booting
				cloud.SetHook(func(ctx context.Context, c fake.Call) error {
					if c.Op == fake.OpWait && !c.Done {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return seen.hook(ctx, c)
				})
			}
			proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
			client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: s.root, Timeout: 400 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			running := s.launch(func(d *launcher.Deps) { d.Client, d.Resync = client, resync })
			zktest.Eventually(t, func() bool { return running.Ready() == nil }, "the launcher to serve")
			seen.patient(resync)
			before, machines := s.world()
			allow := zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, part)
			session, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen.deletions.Store(0)
			proxy.Cut()
			<-session.Context().Done()
			proxy.Heal()
			s.launch(func(d *launcher.Deps) { d.Resync = resync })
			seen.patient(resync)
			allow()
			after, left := s.world()
			for id := range before {
				if _, ok := after[id]; !ok {
					t.Errorf("node %s, which was %s, is gone", id, before[id])
				}
			}
			for id := range machines {
				if !left[id] {
					t.Errorf("machine %s is gone", id)
				}
			}
			if n := seen.deletions.Load(); n > 0 {
				t.Errorf("%d machines were deleted", n)
			}
		})
	}
}

// Nothing is deleted because of a list that failed or is partial, also no idle node whose machine it lacks.
func TestListsThatSayNothing(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"failed": providers.ErrTransient, "partial": &providers.PartialError{Err: providers.ErrUnusable}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, stockOfSmall)
			s.image()
			var lists atomic.Int64
			broken := make(chan struct{})
			s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
				select {
				case <-broken:
				default:
					return nil
				}
				if c.Op == fake.OpList && !c.Done {
					lists.Add(1)
					return err
				}
				return nil
			})
			s.launch(func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
			zktest.Eventually(t, func() bool { return s.free() == 1 }, "one node in stock")
			before := s.nodes()[0]
			close(broken)
			zktest.Eventually(t, func() bool { return lists.Load() > 1 }, "the lists that began before are over")
			if err := s.clouds["cloud"].DeleteNode(t.Context(), before.ExternalID.Text()); err != nil {
				t.Fatal(err)
			}
			at := lists.Load()
			zktest.Eventually(t, func() bool { return lists.Load() > at+5 }, "lists")
			if n := s.node(before.ID); n.State != zkmodel.NodeReady || n.ExternalID.Text() != before.ExternalID.Text() {
				t.Errorf("node %s is %s", n.ID, n.State)
			}
		})
	}
}

// world is what is in the tree, nodes by state, and in the clouds.
func (s *site) world() (nodes map[string]zkmodel.NodeState, machines map[string]bool) {
	s.t.Helper()
	nodes, machines = map[string]zkmodel.NodeState{}, map[string]bool{}
	for _, n := range s.nodes() {
		nodes[n.ID] = n.State
	}
	for _, cloud := range s.clouds {
		list, err := cloud.ListNodes(context.WithoutCancel(s.t.Context()))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range list {
			machines[m.ExternalID] = true
		}
	}
	return nodes, machines
}

// What cannot be read takes its place: no slot is registered again, no quota and no
// stock is free.
func TestUnreadableOccupies(t *testing.T) {
	t.Parallel()
	const resync = 100 * time.Millisecond
	t.Run("slots", func(t *testing.T) {
		s := newSite(t, twoSlots)
		open := func(d *launcher.Deps) {
			d.Resync = resync
			d.Open = func(p configs.Provider) (providers.Provider, error) { return static.New(p), nil }
		}
		first := s.launch(open)
		zktest.Eventually(t, func() bool { return s.free() == 2 }, "two slots")
		first.stop()
		allow := zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, s.nodes()[0].Path())
		second := s.launch(open)
		zktest.Eventually(t, func() bool { return second.Ready() == nil }, "the launcher to serve")
		<-time.After(15 * resync) // duties settle, then five resyncs
		allow()
		if n := len(s.nodes()); n != 2 {
			t.Errorf("%d records of 2 slots", n)
		}
	})
	t.Run("quota and stock", func(t *testing.T) {
		s := newSite(t, closedClouds)
		s.config.Providers[0].Pools[0].MaxServers = 2
		s.image()
		first := s.launch()
		out := s.wait(s.submit(wish("small")))
		taken, err := s.zuul.Accept(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.zuul.Use(taken...); err != nil {
			t.Fatal(err)
		}
		zktest.Eventually(t, func() bool { return s.machines("cloud") == 2 }, "one in use, one in stock")
		first.stop()
		var closed []func()
		for _, n := range s.nodes() {
			closed = append(closed, zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, n.Path()))
		}
		s.launch(func(d *launcher.Deps) { d.Resync = resync })
		id := s.submit(wish("small"))
		<-time.After(20 * resync)
		if n := s.machines("cloud"); n != 2 {
			t.Errorf("%d machines, max-servers is 2", n)
		}
		r, err := s.store.Request(t.Context(), id)
		if err != nil || r.State != zkmodel.RequestRequested {
			t.Errorf("request %+v (%v), want it to wait", r, err)
		}
		for _, allow := range slices.Backward(closed) {
			allow()
		}
		if states, _ := s.world(); len(states) != 2 {
			t.Errorf("nodes %v", slices.Collect(maps.Values(states)))
		}
	})
}
