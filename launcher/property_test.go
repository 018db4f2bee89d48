package launcher

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// drawPool makes a pool with labels a, b and c of 1, 2 and 4 instances.
func drawPool(t *rapid.T, name string) *Pool {
	offers := map[string]Offer{}
	for label, size := range map[string]int{"a": 1, "b": 2, "c": 4} {
		offers[label] = Offer{Ready: true, Needs: providers.Resources{
			providers.Instances: size, providers.RAM: size * 100,
		}}
	}
	return &Pool{
		ID: "host-" + name, Provider: name, Name: "main", Room: -1, Counted: true,
		Priority: rapid.SampledFrom([]int{10, 100}).Draw(t, name+" priority"),
		Limits:   providers.Resources{providers.Instances: rapid.IntRange(1, 12).Draw(t, name+" limit")},
		Cloud:    providers.Resources{providers.RAM: 100 * rapid.IntRange(1, 12).Draw(t, name+" cloud")},
		Zones:    rapid.SampledFrom([][]string{nil, {"z1"}, {"z1", "z2"}}).Draw(t, name+" zones"),
		Offers:   offers,
	}
}

var labels = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3)

// drawSnapshot makes a situation within the quota.
func drawSnapshot(t *rapid.T) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Pools: []*Pool{drawPool(t, "one"), drawPool(t, "two")}, Grace: time.Second}
	u := newUsage(nil, s.Pools)
	for i := range rapid.IntRange(0, 10).Draw(t, "nodes") {
		pool := rapid.SampledFrom(s.Pools).Draw(t, "pool")
		label := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "label")
		needs := pool.Offers[label].Needs
		if u.shortage(pool, needs) != "" {
			continue
		}
		u.add(poolKey{pool.Provider, pool.Name}, needs)
		s.Nodes = append(s.Nodes, &zkmodel.Node{
			ID: fmt.Sprintf("%010d", i), Provider: pool.Provider, Pool: pool.Name, Type: zkmodel.Strings{label},
			Resources: needs, AZ: rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"),
			State: rapid.SampledFrom([]zkmodel.NodeState{
				zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.NodeDeleting, zkmodel.NodeBuilding,
			}).Draw(t, "state"),
		})
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
		age := time.Duration(rapid.IntRange(0, 1000).Draw(t, "age")) * time.Second
		s.Requests = append(s.Requests, &zkmodel.Request{
			ID:    fmt.Sprintf("%d00-%010d", rapid.IntRange(1, 3).Draw(t, "priority"), i),
			State: zkmodel.RequestRequested, NodeTypes: labels.Draw(t, "labels"),
			Reuse: rapid.Bool().Draw(t, "reuse"), RelativePriority: rapid.IntRange(0, 2).Draw(t, "relative"),
			Stat: recipe.Stat{Ctime: s.Now.Add(-age)},
		})
	}
	return s
}

// What is accepted fits what is there, node by node and resource by resource;
// every place is filled, no node twice, all of a request in one zone.
func TestAssignNeverExceedsTheQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		u := newUsage(s.Nodes, s.Pools)
		nodes := map[string]*zkmodel.Node{}
		for _, n := range s.Nodes {
			nodes[n.ID] = n
		}
		given := map[string]bool{}
		for _, d := range Assign(s) {
			for _, id := range d.Evict {
				if given[id] || nodes[id].State != zkmodel.NodeReady {
					t.Fatalf("evicts %s, which is %s or given away", id, nodes[id].State)
				}
				given[id] = true
			}
			if d.Verdict != Accept {
				continue
			}
			if len(d.Places) != len(d.Request.NodeTypes) {
				t.Fatalf("%d places for %d labels", len(d.Places), len(d.Request.NodeTypes))
			}
			zones := map[string]bool{}
			for i, place := range d.Places {
				if place.Label != d.Request.NodeTypes[i] {
					t.Fatalf("place %d is of %s, want %s", i, place.Label, d.Request.NodeTypes[i])
				}
				if place.Node == "" {
					u.add(poolKey{d.Pool.Provider, d.Pool.Name}, place.Needs)
					zones[d.Zone] = true
					continue
				}
				n := nodes[place.Node]
				if given[n.ID] || n.State != zkmodel.NodeReady || n.Provider != d.Pool.Provider || !d.Request.Reuse {
					t.Fatalf("gives away node %s, %s of %s", n.ID, n.State, n.Provider)
				}
				given[n.ID] = true
				if n.AZ != "" {
					zones[n.AZ] = true
				}
			}
			if delete(zones, ""); len(zones) > 1 {
				t.Fatalf("request %s in several zones: %v", d.Request.ID, zones)
			}
		}
		for _, p := range s.Pools {
			if reason := u.shortage(p, providers.Resources{}); reason != "" {
				t.Fatal(reason)
			}
			for name, limit := range p.Limits {
				if got := u.pools[poolKey{p.Provider, p.Name}][name]; got > limit {
					t.Fatalf("%s of pool %s: %d of %d", name, p.Provider, got, limit)
				}
			}
			for name, limit := range p.Cloud {
				if got := u.providers[p.Provider][name]; got > limit {
					t.Fatalf("%s of provider %s: %d of %d", name, p.Provider, got, limit)
				}
			}
		}
	})
}

// Of two requests that want the same, the better one is never left waiting
// while the other is served.
func TestAssignRespectsPriority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		waiting := map[string]string{} // what is wanted, and who waits for it
		for _, d := range Assign(s) {
			want := fmt.Sprint(d.Request.NodeTypes, d.Request.Reuse)
			switch d.Verdict {
			case Wait:
				waiting[want] = d.Request.ID
			case Accept:
				if first := waiting[want]; first != "" {
					t.Fatalf("%s is served before %s, which wants the same: %s", d.Request.ID, first, want)
				}
			case Decline, Leave, Reclaim:
			}
		}
	})
}

// Nobody starves: while nodes come back and new requests come in at any rate,
// every request that a pool can serve is served within a bounded time. Neither
// do small ones wait for ever behind a large one.
func TestAssignStarvesNobody(t *testing.T) {
	const (
		tick = 5 * time.Second
		life = 4 * time.Minute // of a node; shorter than a drain
		most = overtakeTime + 2*drainTime
	)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, "one")
		p.Limits, p.Cloud = providers.Resources{providers.Instances: 6}, nil
		start := time.Unix(100_000, 0)
		s := &Snapshot{Now: start, Pools: []*Pool{p}}
		ends := map[string]time.Time{}
		serial := 0
		submit := func(labels ...string) *zkmodel.Request {
			serial++
			r := &zkmodel.Request{
				ID: fmt.Sprintf("200-%010d", serial), State: zkmodel.RequestRequested, NodeTypes: labels,
				Stat: recipe.Stat{Ctime: s.Now},
			}
			s.Requests = append(s.Requests, r)
			return r
		}
		rate := rapid.IntRange(0, 1).Draw(t, "new ones a minute")
		for range rapid.IntRange(0, 6).Draw(t, "small ones before") {
			submit("a")
		}
		large := submit("c", "b") // all six
		for s.Now.Sub(start) < 30*time.Minute {
			if s.Now.Sub(start)%time.Minute == 0 {
				for range rate {
					submit("a")
				}
			}
			var left []*zkmodel.Node
			for _, n := range s.Nodes {
				if ends[n.ID].After(s.Now) {
					left = append(left, n)
				}
			}
			s.Nodes = left
			for _, d := range Assign(s) {
				if waited := s.Now.Sub(d.Request.Stat.Ctime); waited > most {
					t.Fatalf("request %s (large is %s) has waited for %s: %s", d.Request.ID, large.ID, waited, d.Reason)
				}
				if d.Verdict != Accept {
					continue
				}
				d.Request.State = zkmodel.RequestFulfilled
				for _, place := range d.Places {
					id := fmt.Sprintf("%s-%d", d.Request.ID, len(s.Nodes))
					ends[id] = s.Now.Add(life)
					s.Nodes = append(s.Nodes, &zkmodel.Node{
						ID: id, Provider: p.Provider, Pool: p.Name, State: zkmodel.NodeInUse, Resources: place.Needs,
					})
				}
			}
			s.Now = s.Now.Add(tick)
		}
		if large.State != zkmodel.RequestFulfilled {
			t.Fatal("the large request was never served")
		}
	})
}
