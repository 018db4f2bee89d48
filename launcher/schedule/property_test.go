package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// booking counts what decisions use, and checks each by itself.
type booking struct {
	used  *usage
	red   int // instances of the tenant with a limit
	nodes map[string]*zkmodel.Node
	given map[string]bool
}

func newBooking(s *Snapshot) *booking {
	b := &booking{used: newUsage(s.Nodes, s.Pools), nodes: map[string]*zkmodel.Node{}, given: map[string]bool{}}
	for _, n := range s.Nodes {
		b.nodes[n.ID] = n
		if n.TenantName == "red" {
			b.red += n.Resources[providers.Instances]
		}
	}
	return b
}

// evict checks that idle nodes are evicted, once, in pools that we count.
func (b *booking) evict(t *rapid.T, d Wait) {
	for _, id := range d.Evict {
		n := b.nodes[id]
		if b.given[id] || n.State != zkmodel.NodeReady || n.Locked || n.AllocatedTo != "" || !d.Pool.HoldsQuota {
			t.Fatalf("evicts %s, which is %s or given away, or counted by others", id, n.State)
		}
		b.given[id] = true
	}
}

// accept checks what a request is given: all its labels, in one pool and zone.
func (b *booking) accept(t *rapid.T, d Accept) {
	r := d.Request
	if len(d.Places) != len(r.NodeTypes) {
		t.Fatalf("%d places for %d labels", len(d.Places), len(r.NodeTypes))
	}
	zones := map[string]bool{}
	fresh := false
	for i, place := range d.Places {
		if place.Label != r.NodeTypes[i] {
			t.Fatalf("place %d is of %s, want %s", i, place.Label, r.NodeTypes[i])
		}
		needs := d.Pool.Offers[place.Label].Needs
		if r.TenantName == "red" {
			b.red += needs[providers.Instances]
		}
		if place.Node == "" {
			b.used.add(PoolKey{d.Pool.Provider, d.Pool.Name}, needs)
			zones[d.Zone], fresh = true, true
			continue
		}
		n := b.nodes[place.Node]
		if b.given[n.ID] || n.State != zkmodel.NodeReady || n.Locked || n.AllocatedTo != "" || !r.Reuse ||
			n.Provider != d.Pool.Provider || n.Pool != d.Pool.Name || n.Type[0] != place.Label {
			t.Fatalf("gives away node %s, %s of %s/%s", n.ID, n.State, n.Provider, n.Pool)
		}
		b.given[n.ID] = true
		if n.AZ != "" {
			zones[n.AZ] = true
		}
	}
	if delete(zones, ""); len(zones) > 1 {
		t.Fatalf("request %s in several zones: %v", r.ID, zones)
	}
	if counted := fresh || r.TenantName == "red"; counted && !d.Pool.HoldsQuota || counted != d.UsesQuota {
		t.Fatalf("request %s is accepted while another may count", r.ID)
	}
}

// What is accepted fits what is there, node by node and resource by resource, in
// the pool, the provider and the tenant; every place is filled, no node twice.
func TestAssignNeverExceedsTheQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		b := newBooking(s)
		launches := map[string]int{}
		for _, d := range Assign(s) {
			switch d := d.(type) {
			case Wait:
				b.evict(t, d)
			case Accept:
				b.accept(t, d)
				fresh := len(newMachines(d.Places))
				if room := d.Pool.Room; fresh > 0 && room >= 0 && launches[d.Pool.Provider] >= room {
					t.Fatalf("request %s is launched beyond max-concurrency %d", d.Request.ID, room)
				}
				launches[d.Pool.Provider] += fresh
			}
		}
		for _, p := range s.Pools {
			within(t, "pool "+p.ID, b.used.pools[PoolKey{p.Provider, p.Name}], p.Limits)
			within(t, "provider "+p.Provider, b.used.providers[p.Provider], p.Cloud)
		}
		if limit := s.Tenants["red"][providers.Instances]; b.red > limit {
			t.Fatalf("tenant red has %d of %d", b.red, limit)
		}
	})
}

// within checks that what is used does not exceed limits.
func within(t *rapid.T, what string, used, limits providers.Resources) {
	for name, limit := range limits {
		if used[name] > limit {
			t.Fatalf("%s of %s: %d of %d", name, what, used[name], limit)
		}
	}
}

// Of two requests that want the same, the better one is never left waiting
// while the other is served, but for the quota's lock: that it has next.
func TestAssignRespectsPriority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		waiting := map[string]string{} // what is wanted, and who waits for it
		for _, d := range Assign(s) {
			r := d.Of()
			want := fmt.Sprint(r.NodeTypes, r.Reuse, r.Provider, r.TenantName)
			switch d := d.(type) {
			case Wait:
				if !d.NeedsQuota {
					waiting[want] = r.ID
				}
			case Accept:
				if first := waiting[want]; first != "" {
					t.Fatalf("%s is served before %s, which wants the same: %s", r.ID, first, want)
				}
			}
		}
	})
}

// The best request is served as if it were alone: what is decided over requests
// depends on no request that comes after them.
func TestAssignLooksAtBetterOnesOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		all := Assign(s)
		order := slices.SortedFunc(slices.Values(s.Requests), func(a, b *zkmodel.Request) int {
			return cmp.Or(cmp.Compare(a.ID[:3], b.ID[:3]), cmp.Compare(a.RelativePriority, b.RelativePriority), cmp.Compare(a.ID, b.ID))
		})
		first := *s
		first.Requests = order[:rapid.IntRange(1, len(order)).Draw(t, "how many")]
		for i, d := range Assign(&first) {
			if d.Of() != order[i] {
				t.Fatalf("decision %d is over %s, want %s", i, d.Of().ID, order[i].ID)
			}
			if d.Of() != all[i].Of() || show(d) != show(all[i]) || d.Why() != all[i].Why() {
				t.Fatalf("%s: %s (%s), with those that come later %s (%s)", d.Of().ID, show(d), d.Why(), show(all[i]), all[i].Why())
			}
		}
	})
}

// A request ends: one that no pool can ever serve is declined by every pool, and
// one that could be served alone in empty clouds is not.
func TestAssignDeclinesWhatCanNeverBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.Nodes, s.Requests = nil, s.Requests[:1]
		for _, p := range s.Pools {
			p.Room, p.HoldsQuota = -1, true
			s.Registered = append(s.Registered, &zkmodel.Component{
				ID: p.ID, ProviderName: p.Provider, Priority: p.Priority, SupportedLabels: slices.Collect(maps.Keys(p.Offers)),
			})
		}
		r := s.Requests[0]
		r.TenantName = "blue"
		possible := slices.ContainsFunc(s.Pools, func(p *Pool) bool { return fits(p, r.NodeTypes) })
		for range s.Pools {
			d := Assign(s)[0]
			if d.Verdict() == "accept" {
				break
			}
			no, declined := d.(Decline)
			if !declined || len(no.Pools) == 0 {
				t.Fatalf("%s: %s (%s), although nothing is in its way", r.ID, d.Verdict(), d.Why())
			}
			r.DeclinedBy = append(r.DeclinedBy, no.Pools...)
			if DeclinedByAll(s.Registered, r) {
				break
			}
		}
		if failed := DeclinedByAll(s.Registered, r); failed == possible {
			t.Fatalf("failed: %v, could be served: %v", failed, possible)
		}
	})
}

// fits reports whether an empty pool has room for labels.
func fits(p *Pool, labels []string) bool {
	sum := providers.Resources{}
	for _, l := range labels {
		offer, ok := p.Offers[l]
		if !ok {
			return false
		}
		sum = Plus(sum, offer.Needs)
	}
	for _, limits := range []providers.Resources{p.Limits, p.Cloud} {
		for name, limit := range limits {
			if sum[name] > limit {
				return false
			}
		}
	}
	return true
}
