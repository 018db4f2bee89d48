package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxListed is how many names an error lists; more are read by nobody.
const maxListed = 10

// Similar is what an error about a name that is none of the known ones ends with: the name
// that was most probably meant, if one is near, and those that there are, the ten nearest
// of many. It is "" where there are none.
func Similar(name string, known []string) string {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	if len(known) == 0 {
		return ""
	}
	return didYouMean(name, known) + "; these are: " + nearest(name, known)
}

// nearest lists the known names, sorted; of more than ten those that are most like name.
func nearest(name string, known []string) string {
	if len(known) <= maxListed {
		return strings.Join(known, ", ")
	}
	cost := map[string]int{}
	if len(name) <= maxMisspelt {
		for _, candidate := range known {
			cost[candidate] = misspelling(name, candidate)
		}
	}
	slices.SortStableFunc(known, func(a, b string) int { return cmp.Compare(cost[a], cost[b]) })
	shown := slices.Sorted(slices.Values(known[:maxListed]))
	return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), len(known)-maxListed)
}
