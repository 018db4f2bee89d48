package schedule

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"poolkeeper/configs/planted"
	"poolkeeper/launcher/lesson"
	"poolkeeper/zkmodel"
)

// idleNodes holds the ready nodes that belong to nobody, the oldest first.
type idleNodes struct {
	pools  map[PoolKey][]*zkmodel.Node
	labels map[idleKey][]*zkmodel.Node
	byID   map[string]*zkmodel.Node // those that are still there
}

// idleKey is one label of one pool. A node with several labels is in several lists.
type idleKey struct {
	PoolKey
	label string
}

func newIdleNodes(nodes []*zkmodel.Node, without ...map[string]bool) *idleNodes {
	var free []*zkmodel.Node
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeReady && (n.AllocatedTo == "" || planted.Bug("claim")) && !n.Locked &&
			!slices.ContainsFunc(without, func(ids map[string]bool) bool { return ids[n.ID] }) {
			free = append(free, n)
		}
	}
	slices.SortFunc(free, func(a, b *zkmodel.Node) int {
		return cmp.Or(cmp.Compare(a.StateTime, b.StateTime), cmp.Compare(a.ID, b.ID))
	})
	s := &idleNodes{
		pools: map[PoolKey][]*zkmodel.Node{}, labels: map[idleKey][]*zkmodel.Node{},
		byID: make(map[string]*zkmodel.Node, len(free)),
	}
	for _, n := range free {
		pool := PoolKey{n.Provider, n.Pool}
		s.byID[n.ID] = n
		s.pools[pool] = append(s.pools[pool], n)
		for _, label := range n.Type {
			s.labels[idleKey{pool, label}] = append(s.labels[idleKey{pool, label}], n)
		}
	}
	return s
}

// find returns a node of a label that is not taken and in a zone, where one is
// given; else nil. It stays idle.
func (s *idleNodes) find(pool PoolKey, label, zone string, taken map[string]bool) *zkmodel.Node {
	for _, n := range s.labels[idleKey{pool, label}] {
		if s.byID[n.ID] != nil && !taken[n.ID] && (zone == "" || n.AZ == "" || n.AZ == zone) {
			return n
		}
	}
	return nil
}

// idle goes through the idle nodes of a pool, the oldest first.
func (s *idleNodes) idle(pool PoolKey) iter.Seq[*zkmodel.Node] {
	return func(yield func(*zkmodel.Node) bool) {
		for _, n := range s.pools[pool] {
			if s.byID[n.ID] != nil && !yield(n) {
				return
			}
		}
	}
}

// has reports whether a pool has an idle node.
func (s *idleNodes) has(pool PoolKey) bool {
	for range s.idle(pool) {
		return true
	}
	return false
}

// remove takes a node away and returns it; nil when it is not there.
func (s *idleNodes) remove(id string) *zkmodel.Node {
	n := s.byID[id]
	delete(s.byID, id)
	return n
}

// Rest is what is left once all requests of a snapshot were decided over.
type Rest struct {
	a     *assignment
	waits map[string]*zkmodel.Request // the first that waits, by provider
}

// After decides over all requests. It has no side effects.
func After(s *Snapshot) *Rest {
	a := newAssignment(s)
	return &Rest{a: a, waits: a.waiting()}
}

// Spare says whether one more node of a label, for which there is no request, can be
// launched in pool p, and what its launch remembers of that; why says why not, and is ""
// when it can. No idle node makes room for it.
func (rest *Rest) Spare(p *Pool, label string) (asked lesson.Asked, why string) {
	if p.Static {
		return asked, fmt.Sprintf("the machines of provider %s exist already", p.Provider)
	}
	if p.Idle {
		return asked, fmt.Sprintf("provider %s launches nothing (max-concurrency 0)", p.Provider)
	}
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{label}, Requestor: MinReadyRequestor}
	if why, frozen := p.frozen(r.NodeTypes); frozen {
		return asked, why
	}
	offer, has := p.Offers[label]
	if !has {
		return asked, fmt.Sprintf("pool %s of %s does not have the label %s", p.Name, p.Provider, label)
	}
	offer.Ready = true // it brings its own image
	able := *p
	able.Offers = map[string]Offer{label: offer}
	if no, so := impossible(&able, r); so {
		return asked, no.reason
	}
	if why, so := unknown(&able, r); so {
		return asked, why
	}
	if r := rest.waits[p.Provider]; r != nil {
		return asked, fmt.Sprintf("request %s waits for provider %s, and comes first", r.ID, p.Provider)
	}
	y := yes{said: said{p, ""}, places: []Place{{Label: label, Needs: offer.Needs}}, needs: Plus(nil, offer.Needs)}
	if why, exceeds := neverFits(p, y.needs); exceeds {
		return asked, why
	}
	switch said := rest.a.launchable(p, r, y).(type) {
	case yes:
		return lesson.Asked{Round: p.Learned.Lesson.Round, Kind: said.kind}, ""
	case later:
		return asked, said.reason
	}
	return asked, "it cannot be told"
}

// waiting decides over all requests, which books what they take, and returns by provider
// the first that waits: for room there, or for a moment, or for a launcher with other
// labels.
func (a *assignment) waiting() map[string]*zkmodel.Request {
	waits := map[string]*zkmodel.Request{}
	note := func(r *zkmodel.Request, provider string) {
		if waits[provider] == nil {
			waits[provider] = r
		}
	}
	for _, r := range ordered(a.Requests) {
		if r.Broken != nil || r.State != zkmodel.RequestRequested || a.Busy[r.ID] && a.allocated()[r.ID] {
			continue
		}
		others := a.Busy[r.ID]
		if !others {
			switch d := a.decide(r).(type) {
			case Wait:
				if d.Queued {
					note(r, d.Pool.Provider)
				}
			case Yield:
				others = d.Since.IsZero() // else its room is booked
			default:
			}
		}
		if !others {
			continue
		}
		for _, c := range a.candidates(r) {
			if r.Provider == "" || r.Provider == c.provider {
				note(r, c.provider)
			}
		}
	}
	return waits
}
