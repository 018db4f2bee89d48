package rendezvous_test

import (
	"fmt"
	"slices"
	"testing"

	"poolkeeper/zkmodel/rendezvous"
)

// loads returns how many shares each member has, sorted.
func loads(t *testing.T, shares map[string][]string) []int {
	t.Helper()
	count, all := map[string]int{}, map[string]bool{}
	for share, owner := range rendezvous.Spread(shares) {
		if !slices.Contains(shares[owner], share) {
			t.Errorf("%s cannot work %s", owner, share)
		}
		count[owner]++
	}
	total, numbers := 0, []int{}
	for member, list := range shares {
		numbers = append(numbers, count[member])
		total += count[member]
		for _, share := range list {
			all[share] = true
		}
	}
	if total != len(all) {
		t.Errorf("%d of %d shares have a member", total, len(all))
	}
	slices.Sort(numbers)
	return numbers
}

func TestSpread(t *testing.T) {
	t.Parallel()
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = fmt.Sprintf("/duties/label-%d", i)
	}
	for name, tc := range map[string]struct {
		shares map[string][]string
		want   []int
	}{
		"no member":      {nil, []int{}},
		"one member":     {map[string][]string{"a": nine}, []int{9}},
		"two members":    {map[string][]string{"a": nine, "b": nine}, []int{4, 5}},
		"four members":   {map[string][]string{"a": nine, "b": nine, "c": nine, "d": nine}, []int{2, 2, 2, 3}},
		"different sets": {map[string][]string{"a": nine, "b": nine[:4]}, []int{4, 5}},
		"no share":       {map[string][]string{"a": nine, "b": nil}, []int{0, 9}},
		"twice the same": {map[string][]string{"a": {"x", "x"}, "b": {"x"}}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := loads(t, tc.shares); !slices.Equal(got, tc.want) {
				t.Errorf("members have %v shares, want %v", got, tc.want)
			}
		})
	}
}
