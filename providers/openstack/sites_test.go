package openstack

import (
	"testing"

	"poolkeeper/providers"
)

// Two installations share a project and call their providers alike: each counts
// as its own what its tree has, and everything else as the other's.
func TestLimitsBesideAnotherSite(t *testing.T) {
	s := newStub(t)
	s.quota = 10
	p := s.open(t, section())
	servers := func(site, node string, n int) {
		for range n {
			meta := map[string]any{providers.MetaProvider: "north", providers.MetaNode: node}
			if site != "" {
				meta[providers.MetaSite] = site
			}
			s.addServer(map[string]any{"name": "np", "metadata": meta})
		}
	}
	servers("ours", "1", 1)
	servers("another", "1", 3) // whose node ids are the same
	servers("", "2", 1)        // Nodepool's, of our tree
	servers("ours", "3", 2)    // leaked: our tree has no record
	tree := map[string]bool{"1": true, "2": true}
	ours := func(m providers.NodeInfo) bool {
		site := m.Metadata[providers.MetaSite]
		return (site == "" || site == "ours") && tree[m.Metadata[providers.MetaNode]]
	}
	limits, err := p.Limits(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	if got := limits[providers.Instances]; got != 10-3-2 {
		t.Errorf("room for %d servers of ours, want 5: 10 less 3 of the other site and 2 without a record", got)
	}
}

// A floating IP goes with its server, also when the list of servers that we have
// is older than it.
func TestFloatingIPGoesWithAServerThatJustGotIt(t *testing.T) {
	for range 20 {
		s := newStub(t)
		p := s.open(t, section())
		id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
		if err != nil {
			t.Fatal(err)
		}
		s.inside(id)
		p.networks.forget()
		if _, err := p.WaitNode(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := p.DeleteNode(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		left := len(s.ips)
		s.mu.Unlock()
		if left > 0 {
			t.Fatalf("%d floating IPs are left", left)
		}
	}
}

func TestMarksOfFloatingIPs(t *testing.T) {
	for text, want := range map[string]mark{
		"poolkeeper provider north, node 7, site abc":            {"north", "7", "abc", ""},
		"poolkeeper provider north, node 7, site abc, launch x1": {"north", "7", "abc", "x1"},
		"poolkeeper provider north, node 7":                      {"north", "7", "", ""},
		"poolkeeper provider a, node 1, b, node 7, site s1":      {"a, node 1, b", "7", "s1", ""},
	} {
		got, ok := readMark(text)
		if !ok || got != want {
			t.Errorf("%q: %+v %t, want %+v", text, got, ok, want)
		}
	}
	if _, ok := readMark("someone's"); ok {
		t.Error("any text is a mark")
	}
	for text, m := range map[string]mark{
		"poolkeeper provider north, node 7, site abc": {"north", "7", "abc", ""}, "poolkeeper provider north, node 7, site abc, launch x1": {"north", "7", "abc", "x1"},
	} {
		if m.String() != text {
			t.Errorf("%s", m)
		}
	}
}
