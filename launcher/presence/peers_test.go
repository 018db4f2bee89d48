package presence

import (
	"testing"

	"poolkeeper/zkmodel"
)

// A pool that left is told of once, also when another came in the same moment: by their
// number alone, what its launcher had in hand would be found a minute later.
func TestPoolsThatLeft(t *testing.T) {
	pools := func(names ...string) (list []*zkmodel.Component) {
		for _, name := range names {
			list = append(list, &zkmodel.Component{Name: name, ID: "same"})
		}
		return list
	}
	var p Peers
	for i, c := range []struct {
		now  []*zkmodel.Component
		left bool
	}{
		{nil, true}, // nobody knows who was there before
		{pools("a1", "b2"), false},
		{pools("a1", "b2", "c3"), false},
		{pools("a1", "c3", "d4"), true},
		{pools("a1", "c3", "d4"), false},
		{nil, true},
	} {
		if left := p.Left(c.now); left != c.left {
			t.Errorf("look %d: left %t", i, left)
		}
	}
}
