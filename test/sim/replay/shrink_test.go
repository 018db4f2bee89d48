package replay

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Mistakes: what is left does not fail, or more is left than has to be; it is asked without end.
func TestShrinkLeavesWhatIsNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]int, rapid.IntRange(0, 200).Draw(t, "faults"))
		for i := range list {
			list[i] = i + 1
		}
		needed := slices.DeleteFunc(slices.Clone(list), func(int) bool { return rapid.IntRange(0, 20).Draw(t, "out") > 0 })
		asked := 0
		got := Shrink(list, 10000, func(part []int) bool {
			asked++
			for _, n := range needed {
				if !slices.Contains(part, n) {
					return false
				}
			}
			return true
		})
		if !slices.Equal(got, needed) {
			t.Fatalf("%v is left, %v is needed", got, needed)
		}
		if asked > 3000 {
			t.Fatalf("asked %d times for %d of %d", asked, len(needed), len(list))
		}
	})
}

// Mistakes: no end where each try is dear.
func TestShrinkAsksNoMoreThanItMay(t *testing.T) {
	asked := 0
	got := Shrink([]int{1, 2, 3, 4, 5, 6, 7, 8}, 3, func([]int) bool { asked++; return false })
	if asked != 3 || len(got) != 8 {
		t.Errorf("asked %d times, %v is left", asked, got)
	}
}
