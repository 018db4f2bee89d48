package launcher

import (
	"cmp"
	"slices"

	"poolkeeper/zkmodel"
)

// shelf holds the ready nodes that belong to nobody, by pool and label, the
// oldest first.
type shelf struct {
	nodes map[shelfKey][]string
}

// shelfKey is one place on the shelf. A node with several labels lies in several.
type shelfKey struct {
	poolKey
	label string
}

func newShelf(nodes []*zkmodel.Node) *shelf {
	var free []*zkmodel.Node
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked {
			free = append(free, n)
		}
	}
	slices.SortFunc(free, func(a, b *zkmodel.Node) int {
		return cmp.Or(cmp.Compare(a.StateTime, b.StateTime), cmp.Compare(a.ID, b.ID))
	})
	s := &shelf{nodes: map[shelfKey][]string{}}
	for _, n := range free {
		for _, label := range n.Type {
			key := shelfKey{poolKey{n.Provider, n.Pool}, label}
			s.nodes[key] = append(s.nodes[key], n.ID)
		}
	}
	return s
}

// find returns the id of a node that is not taken, or "". It stays on the shelf.
func (s *shelf) find(pool poolKey, label string, taken map[string]bool) string {
	for _, id := range s.nodes[shelfKey{pool, label}] {
		if !taken[id] {
			return id
		}
	}
	return ""
}

// remove takes a node from the shelf, under all its labels.
func (s *shelf) remove(pool poolKey, id string) {
	for key, ids := range s.nodes {
		if key.poolKey != pool {
			continue
		}
		if i := slices.Index(ids, id); i >= 0 {
			s.nodes[key] = slices.Delete(ids, i, i+1)
		}
	}
}
