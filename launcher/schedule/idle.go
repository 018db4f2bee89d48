package schedule

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

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
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked &&
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

// Spare says whether one more node of a label, for which there is no request, can be
// launched in pool p after all requests that wait, and what its launch remembers of that;
// why says why not, and is "" when it can. No idle node makes room for it.
func Spare(s *Snapshot, p *Pool, label string) (asked lesson.Asked, why string) {
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
	if offer.Ready = true; has { // it brings its own image
		able := *p
		able.Offers = map[string]Offer{label: offer}
		if why, so := impossible(&able, r); so {
			return asked, why
		}
	} else {
		return asked, fmt.Sprintf("pool %s of %s does not have the label %s", p.Name, p.Provider, label)
	}
	if why, so := unknown(p, r); so {
		return asked, why
	}
	a := newAssignment(s)
	if r := a.waitsIn(p.Provider); r != nil {
		return asked, fmt.Sprintf("request %s waits for provider %s, and comes first", r.ID, p.Provider)
	}
	y := yes{said: said{p, ""}, places: []Place{{Label: label, Needs: offer.Needs}}, needs: Plus(nil, offer.Needs)}
	if why, exceeds := neverFits(p, y.needs); exceeds {
		return asked, why
	}
	switch said := a.launchable(p, r, y).(type) {
	case yes:
		return lesson.Asked{Round: p.Learned.Lesson.Round, Kind: said.kind}, ""
	case later:
		return asked, said.reason
	}
	return asked, "it cannot be told"
}

// waitsIn decides over all requests, which books what they take, and returns one that
// waits for a provider: for room there, or for a moment, or for a launcher with other labels.
func (a *assignment) waitsIn(provider string) *zkmodel.Request {
	served := map[string]bool{} // accepted a moment ago, which their records may not show yet
	for _, n := range a.Nodes {
		served[n.AllocatedTo] = true
	}
	var first *zkmodel.Request
	for _, r := range ordered(a.Requests) {
		if r.Broken != nil || r.State != zkmodel.RequestRequested || a.Busy[r.ID] && served[r.ID] {
			continue
		}
		waits := a.offered(r, provider)
		if !a.Busy[r.ID] {
			switch d := a.decide(r).(type) {
			case Wait:
				waits = d.Queued && d.Pool.Provider == provider
			case Yield:
				waits = waits && d.Since.IsZero() // else its room is booked
			default:
				waits = false
			}
		}
		if waits && first == nil {
			first = r
		}
	}
	return first
}

// offered reports whether a pool of a provider, of any launcher, may serve a request.
func (a *assignment) offered(r *zkmodel.Request, provider string) bool {
	for _, c := range a.candidates(r) {
		if c.provider == provider && (r.Provider == "" || r.Provider == provider) {
			return true
		}
	}
	return false
}
