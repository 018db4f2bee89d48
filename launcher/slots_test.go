package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// slotted is a configuration of two providers whose nodes are slots on nodes of two others.
const slotted = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: large}, {name: huge}, {name: tiny}, {name: slot}, {name: bunk}]
diskimages: [{name: debian, elements: [debian], username: tester}]
providers:
  - name: cloud
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools:
      - name: main
        max-servers: 5
        node-attributes: {executor-zone: here, size: large}
        labels: [{name: large, diskimage: debian, min-ram: 1024}]
  - name: other
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools:
      - name: main
        max-servers: 5
        labels: [{name: huge, diskimage: debian, min-ram: 1024}, {name: tiny, diskimage: debian, min-ram: 1024}]
  - name: slots
    driver: metastatic
    pools:
      - name: main
        node-attributes: {size: small}
        labels: [{name: slot, backing-label: large, max-parallel-jobs: 2, grace-time: 1}]
  - name: bunks
    driver: metastatic
    launch-retries: 2
    pools:
      - name: main
        labels: [{name: bunk, backing-label: huge, max-parallel-jobs: 3, grace-time: 1}]
`

// given is the node of a request for one, taken over as Zuul does.
func (s *site) given(label string) (*zkmodel.Node, []*zuul.Node) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{label}, Tenant: "one"}))
	if out.State != "fulfilled" {
		s.t.Fatalf("%+v", out)
	}
	nodes, err := s.zuul.Accept(ctx, out)
	if err == nil {
		err = s.zuul.Use(nodes...)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.node(out.Nodes[0]), nodes
}

// back gives nodes back as Zuul does.
func (s *site) back(nodes []*zuul.Node) {
	s.t.Helper()
	if err := s.zuul.Return(nodes...); err != nil {
		s.t.Fatal(err)
	}
}

// backing is the backing node of a slot, which has to be in use by its provider as Nodepool's
// launcher has it.
func (s *site) backing(child *zkmodel.Node) *zkmodel.Node {
	s.t.Helper()
	on, is := child.OnSlot()
	if !is || on.Node != child.ID || child.ExternalID.Text() != child.ID {
		s.t.Fatalf("node %+v is no slot", child)
	}
	if slot, known := child.Slot.Int(); !known || slot != on.Slot {
		s.t.Errorf("slot %v and %d", child.Slot, on.Slot)
	}
	n := s.node(on.Backing)
	said, backs := n.Backs()
	if !backs || said.Owner != "NodePool:metastatic:"+child.Provider || said.Label != child.Type[0] || n.State != zkmodel.NodeInUse || said.Launched == 0 {
		s.t.Errorf("the backing node %+v says %+v", n, said)
	}
	line, err := recipe.Contenders(s.t.Context(), s.store.Session(), zkmodel.LockPath(n.Path()))
	if err != nil || len(line) != 1 || line[0].Identifier != said.Owner || line[0].Session != 0 {
		s.t.Errorf("locked by %+v, %v", line, err)
	}
	return n
}

// released waits until a provider has no backing nodes, and no cloud a machine.
func (s *site) released(providers ...string) {
	s.t.Helper()
	for _, name := range providers {
		zktest.Eventually(s.t, func() bool {
			names, err := s.store.Session().Children(s.t.Context(), zkmodel.BackingFolder(name))
			return len(names) == 0 && (err == nil || errors.Is(err, recipe.ErrNoNode))
		}, "nothing is known of backing nodes of %s", name)
	}
	s.eventuallyEmpty()
	for cloud := range s.clouds {
		if left := s.machines(cloud); left != 0 {
			s.t.Errorf("%d machines are left in %s", left, cloud)
		}
	}
}

func TestSlotsOnNodesOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	s.launchTwo()
	var children []*zkmodel.Node
	var jobs [][]*zuul.Node
	hosts := map[string][]int{}
	for _, label := range []string{"slot", "slot", "slot", "bunk"} {
		child, job := s.given(label)
		n := s.backing(child)
		slot, _ := child.Slot.Int()
		hosts[n.ID] = append(hosts[n.ID], slot)
		if child.InterfaceIP != n.InterfaceIP || child.Username != n.Username || child.Cloud != n.Cloud || child.AZ != n.AZ || !slices.Equal(child.HostKeys, n.HostKeys) {
			t.Errorf("node %+v\n is not like its backing node\n %+v", child, n)
		}
		if child.Resources["instances"] != 1 || len(child.Resources) != 1 || n.TenantName != "" {
			t.Errorf("counted twice: %v, and %v for %q", child.Resources, n.Resources, n.TenantName)
		}
		children, jobs = append(children, child), append(jobs, job)
	}
	if first := s.backing(children[0]); len(hosts) != 3 || !slices.Equal(hosts[first.ID], []int{0, 1}) {
		t.Errorf("slots by backing node: %v", hosts)
	}
	if text, _ := children[0].Attributes.MarshalJSON(); string(text) != `{"executor-zone":"here","size":"small"}` {
		t.Errorf("attributes %s", text)
	}
	// A slot that became free is the next one's; a backing node that nobody uses goes after its grace.
	s.back(jobs[0])
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 2 }, "the node gone")
	again, job := s.given("slot")
	if at, want := s.backing(again).ID, s.backing(children[1]).ID; at != want {
		t.Errorf("the next node is on %s, want %s", at, want)
	}
	for _, job := range append(jobs[1:], job) {
		s.back(job)
	}
	s.released("slots", "bunks")
}

// Mistake: a slot that two jobs have at a time, a node without one, or a backing node that goes
// below a job, while launchers compete and one of them dies.
func TestSlotsUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.NewReplacer("grace-time: 1", "grace-time: 0", "max-servers: 5", "max-servers: 2").Replace(slotted))
	s.image()
	doomed := s.launch(named("nl01"))
	s.launch(named("nl02"))
	s.launch(named("nl03"))
	zktest.Eventually(t, func() bool { return len(s.pools()) == 12 }, "all registered")
	var mu sync.Mutex
	taken := map[string]string{}
	use := func(n *zuul.Node) (done func()) {
		on := n.Object("driver_data")
		slot := fmt.Sprint(on["backing_node"], "/", on["slot"])
		mu.Lock()
		defer mu.Unlock()
		if other := taken[slot]; other != "" {
			t.Errorf("%s and %s have slot %s", other, n.ID, slot)
		}
		taken[slot] = n.ID
		if backing := s.node(fmt.Sprint(on["backing_node"])); backing.State != zkmodel.NodeInUse || backing.BacksFor() != n.Text("provider") {
			t.Errorf("below node %s: %+v", n.ID, backing)
		}
		return func() {
			mu.Lock()
			defer mu.Unlock()
			delete(taken, slot)
		}
	}
	var jobs sync.WaitGroup
	for i := range 36 {
		jobs.Go(func() {
			labels := [][]string{{"slot"}, {"bunk"}, {"slot", "slot"}, {"tiny"}, {"bunk", "bunk", "bunk"}, {"slot"}}[i%6]
			err := s.zuul.Run(t.Context(), zuul.Wish{Labels: labels}, func(nodes []*zuul.Node) error {
				if i == 18 {
					doomed.client.Close() // every lock goes
				}
				for _, n := range nodes {
					if n.Text("provider") != "other" {
						defer use(n)()
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	for _, n := range s.nodesAt("other") { // nodes of a request that had more than it got
		if n.State == zkmodel.NodeReady {
			s.rewrite(n.ID, func(n *zkmodel.Node) { n.State = zkmodel.NodeUsed })
		}
	}
	s.released("slots", "bunks")
}

// fullSlots is slotted with room for one backing node, with four slots.
var fullSlots = strings.NewReplacer("max-servers: 5", "max-servers: 1", "max-parallel-jobs: 2", "max-parallel-jobs: 4").Replace(slotted)

// A request of several nodes that are slots gets what becomes free, where no further backing node
// can be had. Mistake: one that has some, and waits for a backing node of its own while others are free.
func TestSeveralSlotsWhereTheCloudIsFull(t *testing.T) {
	t.Parallel()
	s := newSite(t, fullSlots)
	s.image()
	s.launchTwo()
	_, one := s.given("slot")
	_, two := s.given("slot")
	waiting := s.submit(wish("slot", "slot", "slot"))
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 5 }, "its nodes in launch")
	s.back(one)
	out := s.wait(waiting)
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	nodes, err := s.zuul.Accept(t.Context(), out)
	if err == nil {
		err = s.zuul.Use(nodes...)
	}
	if err != nil {
		t.Fatal(err)
	}
	var jobs sync.WaitGroup
	for i := range 12 {
		jobs.Go(func() {
			w := zuul.Wish{Labels: [][]string{{"slot", "slot", "slot"}, {"slot", "slot"}, {"slot"}}[i%3], Fresh: i%2 == 0}
			if err := s.zuul.Run(t.Context(), w, func([]*zuul.Node) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	s.back(two)
	s.back(nodes)
	jobs.Wait()
}

// Mistake: a request that waits for a slot while idle nodes have them, as what it waits for is a
// backing node that cannot be had.
func TestIdleNodesMakeRoomForSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t, fullSlots)
	s.image()
	s.launchTwo()
	left := s.submit(wish("slot", "slot"))
	s.wait(left)
	waiting := s.submit(wish("slot", "slot", "slot"))
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 5 }, "the other's in launch")
	if err := s.zuul.Cancel(left); err != nil { // its nodes are nobody's
		t.Fatal(err)
	}
	if out := s.wait(waiting); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
}

// gated holds up creations of a provider of slots.
type gated struct {
	providers.Provider
	providers.Backed

	gate func(ctx context.Context)
}

func (g gated) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	g.gate(ctx)
	return g.Provider.CreateNode(ctx, spec)
}

// Mistake: two requests, each with slots that the other waits for, for ever; two launchers have
// them.
func TestTwoRequestsEachWithSomeOfTheSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t, fullSlots)
	s.image()
	var calls atomic.Int32
	open := make(chan struct{})
	s.launch(named("nl01"), func(d *launcher.Deps) {
		plain := d.Open
		d.Open = func(section configs.Provider) (providers.Provider, error) {
			p, err := plain(section)
			if err != nil || section.Name != "slots" {
				return p, err
			}
			return gated{Provider: p, Backed: p.(providers.Backed), gate: func(ctx context.Context) { //nolint:forcetypeassert // it is
				if n := calls.Add(1); n == 2 || n == 3 {
					select {
					case <-open:
					case <-ctx.Done():
					}
				}
			}}, nil
		}
	})
	slots := func() (used int) {
		list, err := s.store.Session().Children(t.Context(), zkmodel.BackingFolder("slots"))
		for _, id := range list {
			if b, err := s.store.Backing(t.Context(), "slots", id); err == nil {
				used += len(slices.DeleteFunc(b.Slots, func(slot zkmodel.BackingSlot) bool { return slot.Node == "" }))
			}
		}
		if err != nil {
			return 0
		}
		return used
	}
	older := s.submit(wish("slot", "slot", "slot"))
	zktest.Eventually(t, func() bool { return slots() == 1 && calls.Load() == 3 }, "it has one, and is held up")
	s.launch(named("nl02"))
	younger := s.submit(wish("slot", "slot", "slot", "slot"))
	zktest.Eventually(t, func() bool { return slots() == 5 }, "the other has three, and waits")
	close(open)
	out := s.wait(older)
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	nodes, err := s.zuul.Accept(t.Context(), out)
	if err == nil {
		err = s.zuul.Use(nodes...)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.back(nodes)
	if out := s.wait(younger); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
}
