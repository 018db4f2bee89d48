package replay

import "slices"

// Shrink is what is left of a list when nothing more can be taken away with fails still true:
// halves first, then ever smaller parts (delta debugging, as A. Zeller has described it). fails
// must give the same answer each time, and true for the whole list; it is asked at most limit times.
func Shrink(list []int, limit int, fails func(part []int) bool) []int {
	ask := func(part []int) bool {
		limit--
		return limit >= 0 && fails(part)
	}
	for parts := 2; len(list) > 0 && limit > 0; {
		parts = min(parts, len(list))
		smaller := without(list, parts, ask)
		switch {
		case smaller != nil:
			list, parts = smaller, max(parts-1, 2)
		case parts == len(list):
			return list
		default:
			parts *= 2
		}
	}
	return list
}

// without is list without one of so many parts of it, nil if it needs each.
func without(list []int, parts int, fails func([]int) bool) []int {
	for i := range parts {
		from, to := i*len(list)/parts, (i+1)*len(list)/parts
		if rest := slices.Concat(list[:from], list[to:]); fails(rest) {
			if rest == nil {
				rest = []int{}
			}
			return rest
		}
	}
	return nil
}
