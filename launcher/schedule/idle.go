package schedule

import (
	"cmp"
	"iter"
	"slices"

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
