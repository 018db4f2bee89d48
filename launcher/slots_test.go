package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	// With less room requests of several nodes wait for each other: docs/metastatic.md.
	s := newSite(t, strings.NewReplacer("grace-time: 1", "grace-time: 0", "max-servers: 5", "max-servers: 40").Replace(slotted))
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
