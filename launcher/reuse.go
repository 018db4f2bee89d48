package launcher

import (
	"cmp"
	"iter"
	"slices"

	"poolkeeper/zkmodel"
)

// shelf holds the ready nodes that belong to nobody, the oldest first.
type shelf struct {
	pools  map[poolKey][]*zkmodel.Node
	labels map[shelfKey][]*zkmodel.Node
	byID   map[string]*zkmodel.Node // those that are still there
}

// shelfKey is one place on the shelf. A node with several labels lies in several.
type shelfKey struct {
	poolKey
	label string
}

func newShelf(nodes []*zkmodel.Node, evicted map[string]bool) *shelf {
	var free []*zkmodel.Node
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked && !evicted[n.ID] {
			free = append(free, n)
		}
	}
	slices.SortFunc(free, func(a, b *zkmodel.Node) int {
		return cmp.Or(cmp.Compare(a.StateTime, b.StateTime), cmp.Compare(a.ID, b.ID))
	})
	s := &shelf{
		pools: map[poolKey][]*zkmodel.Node{}, labels: map[shelfKey][]*zkmodel.Node{},
		byID: make(map[string]*zkmodel.Node, len(free)),
	}
	for _, n := range free {
		pool := poolKey{n.Provider, n.Pool}
		s.byID[n.ID] = n
		s.pools[pool] = append(s.pools[pool], n)
		for _, label := range n.Type {
			s.labels[shelfKey{pool, label}] = append(s.labels[shelfKey{pool, label}], n)
		}
	}
	return s
}

// find returns a node of a label that is not taken and in a zone, where one is
// given; else nil. It stays on the shelf.
func (s *shelf) find(pool poolKey, label, zone string, taken map[string]bool) *zkmodel.Node {
	for _, n := range s.labels[shelfKey{pool, label}] {
		if s.byID[n.ID] != nil && !taken[n.ID] && (zone == "" || n.AZ == "" || n.AZ == zone) {
			return n
		}
	}
	return nil
}

// idle goes through what lies on a pool's shelf, the oldest first.
func (s *shelf) idle(pool poolKey) iter.Seq[*zkmodel.Node] {
	return func(yield func(*zkmodel.Node) bool) {
		for _, n := range s.pools[pool] {
			if s.byID[n.ID] != nil && !yield(n) {
				return
			}
		}
	}
}

// has tells whether anything lies on a pool's shelf.
func (s *shelf) has(pool poolKey) bool {
	for range s.idle(pool) {
		return true
	}
	return false
}

// remove takes a node from the shelf and returns it; nil when it is not there.
func (s *shelf) remove(id string) *zkmodel.Node {
	n := s.byID[id]
	delete(s.byID, id)
	return n
}
