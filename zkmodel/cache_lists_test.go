package zkmodel

import (
	"slices"
	"testing"
)

// Mistake: a list is kept beyond a change of the tree, or one kind's is shown for another's.
func TestListsAreKeptUntilTheTreeChanges(t *testing.T) {
	var kept lists[int]
	reads := 0
	read := func(list ...int) func() []int {
		return func() []int {
			reads++
			return list
		}
	}
	for i, step := range []struct {
		version uint64
		name    string
		there   []int // that would be read now
		want    []int
	}{
		{0, "pool", []int{1}, []int{1}}, // a tree begins with version 0
		{0, "pool", []int{2}, []int{1}},
		{0, "builder", nil, nil},
		{0, "builder", []int{3}, nil},
		{1, "pool", []int{4}, []int{4}},
		{1, "builder", []int{5}, []int{5}},
	} {
		if got := kept.at(step.version, step.name, read(step.there...)); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %v instead of %v", i, got, step.want)
		}
	}
	if reads != 4 {
		t.Errorf("read %d times instead of 4", reads)
	}
}
