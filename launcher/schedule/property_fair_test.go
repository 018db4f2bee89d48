package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	fairTick = 5 * time.Second
	nodeLife = 4 * time.Minute // shorter than a drain
	// longestWait is how long a request that can be served waits at most.
	longestWait = overtakeTime + 2*drainTime
)

// simulation is one pool over time, whose nodes live for nodeLife.
type simulation struct {
	*Snapshot
	start  time.Time
	ends   map[string]time.Time
	serial int
}

func newSimulation(pools ...*Pool) *simulation {
	start := time.Unix(100_000, 0)
	return &simulation{
		Snapshot: &Snapshot{Now: start, Pools: pools},
		start:    start, ends: map[string]time.Time{},
	}
}

// submit asks for labels.
func (s *simulation) submit(labels ...string) *zkmodel.Request {
	s.serial++
	r := &zkmodel.Request{
		ID: fmt.Sprintf("200-%010d", s.serial), State: zkmodel.RequestRequested, NodeTypes: labels,
		TenantName: "red", Stat: recipe.Stat{Ctime: s.Now},
	}
	s.Requests = append(s.Requests, r)
	return r
}

// step serves who can be served, and goes on in time.
func (s *simulation) step(t *rapid.T) {
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n *zkmodel.Node) bool { return !s.ends[n.ID].After(s.Now) })
	for _, d := range Assign(s.Snapshot) {
		if waited := s.Now.Sub(d.Of().Stat.Ctime); waited > longestWait {
			t.Fatalf("request %s has waited for %s: %s", d.Of().ID, waited, d.Why())
		}
		d, accepts := d.(Accept)
		if !accepts {
			continue
		}
		d.Request.State = zkmodel.RequestFulfilled
		for i, place := range d.Places {
			id := fmt.Sprintf("%s-%d", d.Request.ID, i)
			s.ends[id] = s.Now.Add(nodeLife)
			s.Nodes = append(s.Nodes, &zkmodel.Node{
				ID: id, Provider: d.Pool.Provider, Pool: d.Pool.Name, State: zkmodel.NodeInUse,
				Resources: place.Needs, TenantName: d.Request.TenantName,
			})
		}
	}
	s.Now = s.Now.Add(fairTick)
}

// run lets a large request, which takes all there is, and small ones come in at
// any rate for half an hour.
func (s *simulation) run(t *rapid.T) {
	rate := rapid.IntRange(0, 1).Draw(t, "new ones a minute")
	for range rapid.IntRange(0, 6).Draw(t, "small ones before") {
		s.submit("a")
	}
	large := s.submit("c", "b") // all six
	for s.Now.Sub(s.start) < 30*time.Minute {
		if s.Now.Sub(s.start)%time.Minute == 0 {
			for range rate {
				s.submit("a")
			}
		}
		s.step(t)
	}
	if large.State != zkmodel.RequestFulfilled {
		t.Fatal("the large request was never served")
	}
}

// drawFairPool makes a pool without limits.
func drawFairPool(t *rapid.T) *Pool {
	p := drawPool(t, "one", "main", nil)
	p.Limits, p.Room, p.HoldsQuota, p.Offers = providers.Resources{}, -1, true, drawSizes()
	return p
}

// Nobody starves: while nodes come back and new requests come in at any rate,
// every request that a pool can serve is served within a bounded time. Neither
// do small ones wait for ever behind a large one.
func TestAssignStarvesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawFairPool(t)
		p.Limits[providers.Instances] = 6
		newSimulation(p).run(t)
	})
}

// The same holds where another pool of the provider, which has room of its own,
// serves the small ones.
func TestAssignStarvesNobodyOfAProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		large, small := drawFairPool(t), drawFairPool(t)
		small.ID, small.Name = "host-one-more", "more"
		delete(large.Offers, "a")
		delete(small.Offers, "b")
		delete(small.Offers, "c")
		large.Cloud = providers.Resources{providers.Instances: 6}
		small.Cloud = large.Cloud
		newSimulation(large, small).run(t)
	})
}

// The same holds within the limits of a tenant.
func TestAssignStarvesNobodyOfATenant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(drawFairPool(t))
		s.Tenants = map[string]providers.Resources{"red": {providers.Instances: 6}}
		s.run(t)
	})
}
