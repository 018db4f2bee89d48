package rendezvous

import (
	"cmp"
	"maps"
	"slices"
)

// Spread divides shares evenly among members and returns the member of each share. shares lists the
// shares that each member can work. If all members can work all shares, the numbers of their shares
// differ by at most one. All processes that pass the same shares get the same result.
func Spread(shares map[string][]string) map[string]string {
	able := map[string][]string{} // members by share
	for _, member := range slices.Sorted(maps.Keys(shares)) {
		for _, share := range shares[member] {
			if !slices.Contains(able[share], member) {
				able[share] = append(able[share], member)
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(able), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(able[a]), len(able[b])), cmp.Compare(a, b))
	})
	owners, load := map[string]string{}, map[string]int{}
	for _, share := range order { // shares with the fewest members first: the others can give way
		least := load[slices.MinFunc(able[share], func(a, b string) int { return cmp.Compare(load[a], load[b]) })]
		owner := Owner(slices.DeleteFunc(able[share], func(member string) bool { return load[member] > least }), share)
		owners[share] = owner
		load[owner]++
	}
	return owners
}
