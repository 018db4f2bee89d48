package launcher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// asNodepoolSees are the slots of a provider as Nodepool's launcher finds them when it starts:
// backing nodes whose user_data, JSON in a string, and whose first contender name it; on them,
// nodes of the provider by their driver_data.
func (s *site) asNodepoolSees(provider string) map[string]map[int]string {
	s.t.Helper()
	owner := "NodePool:metastatic:" + provider
	found := map[string]map[int]string{}
	for _, n := range s.nodes() {
		var said map[string]any
		if json.Unmarshal([]byte(n.UserData.Text()), &said) != nil || said["owner"] != owner {
			continue
		}
		line, err := recipe.Contenders(s.t.Context(), s.store.Session(), zkmodel.LockPath(n.Path()))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, key := range []string{"label", "slots", "failed", "launched"} {
			if said[key] == nil {
				s.t.Errorf("%s of %v is missing", key, said)
			}
		}
		if len(line) > 0 && line[0].Identifier == owner {
			found[n.ID] = map[int]string{}
		}
	}
	for _, n := range s.nodes() {
		on, is := n.OnSlot()
		if n.Provider != provider || !is || found[on.Backing] == nil {
			continue
		}
		if at := found[on.Backing][on.Slot]; at != "" {
			s.t.Errorf("nodes %s and %s have one slot", at, n.ID)
		}
		found[on.Backing][on.Slot] = n.ID
	}
	return found
}

// Nodepool's launcher, started in our place, finds each slot that is used.
func TestNodepoolGoesOnWithOurSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	s.launchTwo()
	want := map[string]map[int]string{}
	for range 3 {
		child, _ := s.given("slot")
		on, _ := child.OnSlot()
		if want[on.Backing] == nil {
			want[on.Backing] = map[int]string{}
		}
		want[on.Backing][on.Slot] = child.ID
	}
	s.given("bunk")
	if got := s.asNodepoolSees("slots"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it sees %v, want %v", got, want)
	}
	if got := s.asNodepoolSees("bunks"); len(got) != 1 {
		t.Errorf("of the other provider it sees %v", got)
	}
}

// nodepools makes a backing node with its machine, and nodes on some of its slots, as Nodepool's
// launcher leaves them, in the states given.
func (s *site) nodepools(slots int, failed bool, states ...zkmodel.NodeState) (backing string, children []string) {
	s.t.Helper()
	ctx := s.t.Context()
	backing = s.orphan(zkmodel.NodeInUse, func(n *zkmodel.Node) {
		n.Type, n.InterfaceIP = zkmodel.Strings{"large"}, "fake"
		text := fmt.Sprintf(`{"owner": "NodePool:metastatic:slots", "label": "slot", "slots": %d, "failed": %t, "launched": %d.25}`, slots, failed, time.Now().Unix())
		n.UserData = zkmodel.TextValue(text)
	})
	machine, err := s.clouds["cloud"].CreateNode(ctx, providers.NodeSpec{NodeID: backing, Pool: "main", Label: "large", ImageID: "image", Metadata: map[string]string{
		providers.MetaNode: backing, providers.MetaProvider: "cloud",
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rewrite(backing, func(n *zkmodel.Node) { n.ExternalID = zkmodel.TextValue(machine) })
	contend := func(id, identifier string, mode recipe.Mode) {
		if err := s.store.Session().EnsurePath(ctx, zkmodel.LockPath(zkmodel.NodePath(id))); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.store.Session().Create(ctx, recipe.LastingContender(zkmodel.LockPath(zkmodel.NodePath(id))), []byte(identifier), mode); err != nil {
			s.t.Fatal(err)
		}
	}
	contend(backing, "NodePool:metastatic:slots", recipe.Sequential)
	for slot, state := range states {
		child := s.orphan(state, func(n *zkmodel.Node) { n.Provider, n.Type = "slots", zkmodel.Strings{"slot"} })
		s.rewrite(child, func(n *zkmodel.Node) {
			n.ExternalID = zkmodel.TextValue(child)
			n.DriverData = zkmodel.JSONValue(fmt.Appendf(nil, `{"metadata": {"nodepool_node_id": %q, "nodepool_provider_name": "slots"}, "backing_node": %q, "slot": %d, "node": %q}`, child, backing, slot, child))
		})
		contend(child, "", recipe.Sequential|recipe.Ephemeral)
		children = append(children, child)
	}
	return backing, children
}

// rewrite changes a record without its lock.
func (s *site) rewrite(id string, change func(n *zkmodel.Node)) {
	s.t.Helper()
	n := s.node(id)
	change(n)
	data, err := n.Encode()
	if err == nil {
		_, err = s.store.Session().Set(s.t.Context(), n.Path(), data, n.Stat.Version)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// unlock has a record's holder gone.
func (s *site) unlock(id string) {
	s.t.Helper()
	dir := zkmodel.LockPath(zkmodel.NodePath(id))
	names, err := s.store.Session().Children(s.t.Context(), dir)
	for _, name := range names {
		if err == nil {
			err = s.store.Session().Delete(s.t.Context(), dir+"/"+name, recipe.AnyVersion)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Mistake: a slot that a node of Nodepool's uses is given to another; or a backing node of its
// is left for ever, or goes while a job runs on it.
func TestWeGoOnWithNodepoolsSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	backing, children := s.nodepools(3, false, zkmodel.NodeInUse, zkmodel.NodeHold)
	burnt, left := s.nodepools(2, true, zkmodel.NodeInUse)
	s.launchTwo()
	zktest.Eventually(t, func() bool { // each has its own record, made by the launcher whose duty it is
		names, err := s.store.Session().Children(t.Context(), zkmodel.BackingFolder("slots"))
		return err == nil && len(names) == 2
	}, "both backing nodes taken over")
	child, job := s.given("slot")
	if on, _ := child.OnSlot(); on.Backing != backing || on.Slot != 2 {
		t.Errorf("the new node is on %+v, want slot 2 of %s", on, backing)
	}
	beside, job2 := s.given("slot")
	if on, _ := beside.OnSlot(); on.Backing == backing || on.Backing == burnt {
		t.Errorf("the next node is on %+v", on)
	}
	// The job of a Zuul that died, and one that came to its end.
	s.unlock(children[0])
	s.back(job)
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 3 }, "two nodes gone")
	if n := s.node(backing); n.State != zkmodel.NodeInUse {
		t.Errorf("the backing node is %s while a node on it is held", n.State)
	}
	s.rewrite(children[1], func(n *zkmodel.Node) { n.State = zkmodel.NodeUsed })
	s.unlock(children[1])
	s.unlock(left[0])
	s.back(job2)
	s.released("slots", "bunks")
	if slices.ContainsFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.ID == burnt }) {
		t.Error("the failed one is left")
	}
}

// Mistake: nodes that Nodepool's launcher serves are deleted by ours, so that it has their slots
// for used for ever.
func TestNodesOfNodepoolsSlotsAreLeftToIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	_, children := s.nodepools(2, false, zkmodel.NodeUsed, zkmodel.NodeInUse)
	for _, id := range children {
		s.unlock(id)
	}
	leave := s.foreignPool(zkmodel.Component{ID: "nodepool-1", ProviderName: "slots", PoolName: "main", Priority: 100, SupportedLabels: zkmodel.Strings{"slot"}})
	was := map[string]int64{}
	for _, id := range children {
		was[id] = s.node(id).Stat.Mzxid
	}
	s.launch(named("nl01"))
	s.launch(named("nl02"))
	for range 3 { // another provider's are deleted in the meantime
		id := s.orphan(zkmodel.NodeUsed, func(n *zkmodel.Node) { n.Provider = "other" })
		zktest.Eventually(t, func() bool { _, err := s.store.Node(t.Context(), id); return errors.Is(err, zkmodel.ErrNotFound) }, "the other provider's node gone")
	}
	for id, mzxid := range was {
		if n, err := s.store.Node(t.Context(), id); err != nil || n.Stat.Mzxid != mzxid {
			t.Errorf("node %s was touched: %+v, %v", id, n, err)
		}
	}
	leave()
	s.released("slots", "bunks")
}

// Mistake: nodes that stay locked for ever, as Nodepool's launcher was killed between the two
// writes by which it takes a backing node, or gives one back.
func TestLocksThatNodepoolLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	used, _ := s.nodepools(2, false)
	s.rewrite(used, func(n *zkmodel.Node) { n.State = zkmodel.NodeUsed })
	ready, _ := s.nodepools(2, false)
	theirs, _ := s.nodepools(2, false)
	for id, requestor := range map[string]string{ready: "NodePool:metastatic:slots", theirs: "NodePool:metastatic:elsewhere"} {
		s.rewrite(id, func(n *zkmodel.Node) {
			n.State, n.UserData, n.AllocatedTo, n.Requestor = zkmodel.NodeReady, zkmodel.Value{}, "100-0000000042", requestor
		})
	}
	s.launchTwo()
	zktest.Eventually(t, func() bool { _, err := s.store.Node(t.Context(), used); return errors.Is(err, zkmodel.ErrNotFound) }, "the used one gone")
	zktest.Eventually(t, func() bool { n := s.node(ready); return n.State == zkmodel.NodeReady && n.AllocatedTo == "" }, "the ready one free")
	child, job := s.given("slot")
	if on, _ := child.OnSlot(); on.Backing != ready {
		t.Errorf("the next node is on %s, want %s", on.Backing, ready)
	}
	if n := s.node(theirs); n.AllocatedTo == "" {
		t.Errorf("another provider's: %+v", n)
	}
	s.back(job)
}

// Mistake: a launcher that makes a list of any length because a record says so, and ends with it.
func TestSlotsBeyondAllBounds(t *testing.T) {
	s := newSite(t, slotted)
	s.image()
	backing, children := s.nodepools(3, false, zkmodel.NodeInUse, zkmodel.NodeInUse)
	s.rewrite(backing, func(n *zkmodel.Node) {
		n.UserData = zkmodel.TextValue(`{"owner": "NodePool:metastatic:slots", "label": "slot", "slots": 4611686018427387904, "failed": false, "launched": 1}`)
	})
	s.rewrite(children[0], func(n *zkmodel.Node) {
		n.DriverData = zkmodel.ObjectValue(map[string]any{"backing_node": backing, "slot": 2000000000, "node": children[0]})
	})
	s.launch(named("nl01"))
	s.given("slot") // on another backing node
}

// Mistake: a node that is put where Nodepool's launcher noted that nothing runs any more.
func TestFailureThatNodepoolNoted(t *testing.T) {
	s := newSite(t, slotted)
	s.image()
	with := s.launch(named("nl01"))
	child, _ := s.given("slot")
	with.stop()
	on, _ := child.OnSlot()
	s.rewrite(on.Backing, func(n *zkmodel.Node) {
		n.UserData = zkmodel.TextValue(strings.Replace(n.UserData.Text(), `"failed":false`, `"failed":true`, 1))
		if said, _ := n.Backs(); !said.Failed {
			t.Fatalf("user_data is %s", n.UserData.Text())
		}
	})
	s.launch(named("nl02"))
	next, _ := s.given("slot")
	if now, _ := next.OnSlot(); now.Backing == on.Backing {
		t.Error("the next node is on the same backing node")
	}
}
