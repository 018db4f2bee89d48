package launcher_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// A minute of a real cloud, in which a call is given up, and its five in which it may
// still take up a creation that it did not answer.
const (
	minute  = 200 * time.Millisecond
	uptakes = 5 * minute
)

// slowCloud is a cloud that does as Nova does: each creation that reaches it makes a
// machine, whatever there is already.
type slowCloud struct {
	*fake.Provider

	mu    sync.Mutex
	late  func(node string, before int) time.Duration // 0 answers at once; less than 0 never arrives
	asked map[string][]time.Time                      // by node
	most  map[string]int                              // machines of one node at one moment, "" of all
	alive map[string]string                           // node by machine
	made  int
	waits atomic.Bool // a caller was not answered
	group sync.WaitGroup
}

func newSlowCloud(t *testing.T, s *site, name string, late func(node string, before int) time.Duration) *slowCloud {
	t.Helper()
	c := &slowCloud{Provider: s.clouds[name], late: late, asked: map[string][]time.Time{}, most: map[string]int{}, alive: map[string]string{}}
	t.Cleanup(c.group.Wait)
	return c
}

func (*slowCloud) Close() error { return nil }

// CreateNode looks for the machine, as the contract wants, and asks for it. A late one
// is made long after the call was given up.
func (c *slowCloud) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	list, err := c.ListNodes(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.Metadata[providers.MetaNode] == spec.NodeID && providers.SameLaunch(m.Metadata, spec.Metadata) {
			return m.ExternalID, nil
		}
	}
	if spec.Asking != nil {
		if err := spec.Asking(ctx); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	late := c.late(spec.NodeID, len(c.asked[spec.NodeID]))
	c.asked[spec.NodeID] = append(c.asked[spec.NodeID], time.Now())
	c.mu.Unlock()
	if late == 0 {
		return c.make(context.WithoutCancel(ctx), spec)
	}
	if late > 0 {
		c.group.Go(func() {
			<-time.After(late)
			_, _ = c.make(context.WithoutCancel(ctx), spec)
		})
	}
	select {
	case <-time.After(minute):
		c.waits.Store(true)
		return "", fmt.Errorf("create node %s: %w: %w: no answer", spec.NodeID, providers.ErrUnanswered, providers.ErrTransient)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// make makes a machine and counts.
func (c *slowCloud) make(ctx context.Context, spec providers.NodeSpec) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	spec.NodeID += fmt.Sprintf("#%d", c.made) // it would find the first one
	id, err := c.Provider.CreateNode(ctx, spec)
	if err != nil {
		return "", err
	}
	c.alive[id] = spec.Metadata[providers.MetaNode]
	now := map[string]int{"": len(c.alive)}
	for _, node := range c.alive {
		now[node]++
	}
	for node, n := range now {
		c.most[node] = max(c.most[node], n)
	}
	return id, nil
}

// DeleteNode counts, too.
func (c *slowCloud) DeleteNode(ctx context.Context, id string) error {
	err := c.Provider.DeleteNode(ctx, id)
	if err == nil {
		c.mu.Lock()
		delete(c.alive, id)
		c.mu.Unlock()
	}
	return err
}

// census is how many machines were there at the most, of one node and of all, and how
// often one node was asked for.
func (c *slowCloud) census() (node, all, asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.most {
		if id != "" {
			node = max(node, n)
		}
	}
	for _, times := range c.asked {
		asked = max(asked, len(times))
	}
	return node, c.most[""], asked
}

// requests are the times at which a cloud was asked for machines, in order.
func (c *slowCloud) requests() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(slices.Collect(maps.Values(c.asked))...)
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// twoSlow is a configuration of two providers, of three servers each.
const twoSlow = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}]
diskimages: [{name: debian, elements: [debian]}]
providers:
  - name: north
    driver: fake
    cloud: fake
    priority: 1
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 3, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]
  - name: south
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 3, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]
`

// slowSite is a site whose clouds are slow.
func slowSite(t *testing.T, yaml string, late func(node string, before int) time.Duration) (*site, map[string]*slowCloud, func(*launcher.Deps)) {
	t.Helper()
	s := newSite(t, yaml)
	s.image()
	clouds := map[string]*slowCloud{}
	for i := range s.config.Providers {
		p := &s.config.Providers[i]
		p.UnansweredCreateTimeout = uptakes
		clouds[p.Name] = newSlowCloud(t, s, p.Name, late)
	}
	return s, clouds, func(d *launcher.Deps) {
		d.Open = func(p configs.Provider) (providers.Provider, error) { return clouds[p.Name], nil }
		d.Resync = time.Second
	}
}

// Both clouds take up creations 70 s late, after we have given up the call, and both
// launchers are killed twice meanwhile: at no moment has a node two servers, or a
// provider more than it may.
func TestLateCreationsMakeNoSecondServer(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, twoSlow, func(string, int) time.Duration { return 70 * minute / 60 })
	for i := range s.config.Providers {
		s.config.Providers[i].UnansweredCreateTimeout = 5 * time.Second // a busy machine's kills take their time
	}
	host := func(name string) func(*launcher.Deps) {
		return func(d *launcher.Deps) { d.Hostname, d.FQDN = name, name }
	}
	running := []*running{s.launch(slow, host("one")), s.launch(slow, host("two"))}
	var ids []string
	for range 6 {
		ids = append(ids, s.submit(wish("small")))
	}
	for range 2 {
		for i, name := range []string{"one", "two"} {
			<-time.After(minute / 2)
			running[i].client.Close()
			running[i] = s.launch(slow, host(name))
		}
	}
	for _, id := range ids {
		s.mustBeServed(id)
	}
	for name, c := range clouds {
		c.group.Wait() // those that are on their way
		node, all, asked := c.census()
		if node > 1 || all > 3 {
			t.Errorf("%s had %d servers of one node, %d of max-servers 3 in all; a node was asked for %d times", name, node, all, asked)
		}
	}
	zktest.Eventually(t, func() bool { return s.machines("north")+s.machines("south") == 6 && len(s.nodes()) == 6 }, "six nodes, six machines")
}

// While one provider owes an answer, another takes the request at once; the place in the
// first is taken until the machine came and went.
func TestUnansweredRequestGoesElsewhere(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, twoSlow, func(string, int) time.Duration { return 0 })
	north := clouds["north"]
	north.late = func(string, int) time.Duration { return 2 * minute }
	s.config.Providers[0].UnansweredCreateTimeout = 20 * time.Second
	s.config.Providers[0].Pools[0].MaxServers = 1
	s.launch(slow)
	first := s.mustBeServed(s.submit(wish("small")))
	if n := s.node(first[0]); n.Provider != "south" {
		t.Errorf("served by %s", n.Provider)
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 1 && s.machines("north") == 0 && s.machines("south") == 1 },
		"the late machine to come and go")
	if node, all, asked := north.census(); node != 1 || all != 1 || asked != 1 {
		t.Errorf("north had %d servers of one node, %d in all, and was asked %d times", node, all, asked)
	}
}

// Two clouds that both do not answer keep their requests: it would go to and fro, and
// give up each machine that it had waited for.
func TestUnansweredRequestDoesNotGoToAndFro(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, twoSlow, func(string, int) time.Duration { return 3 * minute })
	for i := range s.config.Providers {
		s.config.Providers[i].UnansweredCreateTimeout = 30 * time.Second
	}
	s.launch(slow)
	s.mustBeServed(s.submit(wish("small")))
	if n := len(clouds["north"].requests()) + len(clouds["south"].requests()); n > 3 {
		t.Errorf("%d machines were asked for", n)
	}
}

// A place stays taken that a cloud may still fill: the next request waits for it.
func TestUnansweredNodeKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, onePool, func(string, int) time.Duration { return -1 })
	s.config.Providers[0].UnansweredCreateTimeout = time.Hour
	s.config.Providers[0].LaunchTimeout = 3 * minute
	s.config.Providers[0].LaunchRetries = 2
	s.config.Providers[0].Pools[0].MaxServers = 1
	s.launch(slow)
	if out := s.wait(s.submit(wish("small"))); out.State != "failed" {
		t.Fatalf("%+v", out)
	}
	waiting := s.submit(wish("small"))
	zktest.Eventually(t, func() bool {
		nodes := s.nodes()
		return len(nodes) == 1 && nodes[0].State == zkmodel.NodeDeleting && nodes[0].Locked
	}, "the node without an answer to be looked for")
	<-time.After(5 * minute)
	r, err := s.store.Request(t.Context(), waiting)
	if err != nil || r.State != zkmodel.RequestRequested || len(clouds["cloud"].requests()) != 1 {
		t.Errorf("request %+v, %v; the cloud was asked %d times", r, err, len(clouds["cloud"].requests()))
	}
}

// What never comes is asked for again when it no longer can, under the image of then,
// and a restart of the launcher does not begin the time anew.
func TestUnansweredIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, onePool, func(_ string, before int) time.Duration {
		return map[bool]time.Duration{true: -1}[before == 0]
	})
	cloud := clouds["cloud"]
	s.config.Providers[0].UnansweredCreateTimeout = 6 * time.Second
	first := s.launch(slow)
	id := s.submit(wish("small"))
	var asked zkmodel.Epoch
	zktest.Eventually(t, func() bool {
		for _, n := range s.nodes() {
			asked = n.Asked
		}
		return asked != 0 && len(cloud.requests()) == 1
	}, "the cloud to be asked")
	first.client.Close()
	newest := s.image()
	s.launch(slow)
	zktest.Eventually(t, func() bool {
		n := s.node(nodeID(0))
		return n.State == zkmodel.NodeBuilding && n.Reason != ""
	}, "another launcher to search")
	if n := s.node(nodeID(0)); n.Asked != asked {
		t.Errorf("asked at %v, then %v", asked.Time(), n.Asked.Time())
	}
	nodes := s.mustBeServed(id)
	times := cloud.requests()
	if len(times) != 2 || nodes[0] != nodeID(0) {
		t.Fatalf("asked at %v, served by nodes %v", times, nodes)
	}
	if pause := times[1].Sub(times[0]); pause < 5900*time.Millisecond {
		t.Errorf("asked for again after %s", pause)
	}
	n := s.node(nodes[0])
	key, err := zkmodel.ParseUploadPath(n.ImageID)
	if err != nil || key.Build != newest.ID || n.Asked != 0 || n.Reason != "" {
		t.Errorf("booted from %+v (%v), want build %s; asked %v, reason %q", key, err, newest.ID, n.Asked, n.Reason)
	}
}

// A failing list is no proof that a machine was not made.
func TestUnansweredWithoutList(t *testing.T) {
	t.Parallel()
	s, clouds, slow := slowSite(t, onePool, func(string, int) time.Duration { return 2 * minute })
	s.config.Providers[0].UnansweredCreateTimeout = 30 * time.Second
	s.launch(slow)
	cloud := clouds["cloud"]
	var failures atomic.Int32
	cloud.SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpList && cloud.waits.Load() && failures.Add(1) <= 3 {
			return fmt.Errorf("%w: down", providers.ErrTransient)
		}
		return nil
	})
	s.mustBeServed(s.submit(wish("small")))
	if node, _, asked := cloud.census(); node != 1 || asked != 1 || failures.Load() < 3 {
		t.Errorf("%d servers, asked %d times, %d lists failed", node, asked, failures.Load())
	}
}
