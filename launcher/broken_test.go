package launcher_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What cannot be decoded stays, and so does what names a provider that is not served;
// what node-delete has left of a record without a provider goes when no cloud has its
// machine, and not before.
func TestBrokenRecordsOfNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, closedClouds)
	deleting := `{"state": "deleting", "provider": null}`
	for id, data := range map[string]string{
		"0000000101": "not JSON", "0000000102": "[]", "0000000103": deleting, "0000000104": deleting,
		"0000000105": `{"state": "used", "provider": "not ours"}`, "0000000106": "x",
	} {
		s.write(zkmodel.NodePath(id), data)
	}
	if _, err := s.store.Session().Set(t.Context(), zkmodel.NodePath("0000000106"), nil, recipe.AnyVersion); err != nil {
		t.Fatal(err) // it was emptied: nobody knows what it held
	}
	machine := s.machine("0000000104")
	s.launch(func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
	there := func() (ids []string) {
		for _, n := range s.nodes() {
			ids = append(ids, n.ID[8:])
		}
		return ids
	}
	zktest.Eventually(t, func() bool { return !slices.Contains(there(), "03") }, "the node without provider and machine to go")
	zktest.Eventually(t, func() bool { return !slices.Contains(there(), "04") }, "the node to go after its machine")
	if list, err := s.clouds["cloud"].ListNodes(t.Context()); err != nil || slices.ContainsFunc(list, func(m providers.NodeInfo) bool { return m.ExternalID == machine }) {
		t.Errorf("its machine is left: %v", err)
	}
	if got, want := there(), []string{"01", "02", "05", "06"}; !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

// An empty record, which a late lock has left, goes; with a machine of its id it stays.
func TestEmptyRecordsOfNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, closedClouds)
	s.write(zkmodel.NodePath("0000000101"), "")
	s.write(zkmodel.NodePath("0000000102"), "")
	s.machine("0000000102")
	var late atomic.Bool // two minutes go by at once: a clock that was early all the time makes nothing older
	s.launch(func(d *launcher.Deps) {
		d.Now = func() time.Time {
			if late.Load() {
				return time.Now().Add(2 * time.Minute)
			}
			return time.Now()
		}
	})
	look := func() { s.wait(s.submit(zuul.Wish{Labels: []string{"unicorn"}})) } // that nobody has
	look()
	late.Store(true)
	look()
	gone := func() bool {
		return !slices.ContainsFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.ID == "0000000101" })
	}
	zktest.Eventually(t, gone, "the empty record to go")
	kept := func(n *zkmodel.Node) bool { return n.ID == "0000000102" }
	if !slices.ContainsFunc(s.nodes(), kept) || s.machines("cloud") < 1 {
		t.Errorf("left: %+v and %d machines", s.nodes(), s.machines("cloud"))
	}
}
