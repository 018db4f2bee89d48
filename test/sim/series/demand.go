package series

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Demand is something that a set of seeds has to reach. Hours alone prove nothing.
type Demand struct {
	// What is its name, as Count counts it.
	What string `json:"what"`
	// Hours is of how many agent-hours a set must be that has to reach it.
	Hours float64 `json:"hours"`
	// Never says why nothing can reach it; it is wrong to reach it then. "" demands it.
	Never string `json:"never,omitempty"`
}

// Unmet says what a set of seeds has not reached that it has to, or has reached that it cannot.
func Unmet(demands []Demand, counts map[string]int, hours float64) (list []string) {
	for _, d := range demands {
		switch n := counts[d.What]; {
		case d.Never != "" && n > 0:
			list = append(list, fmt.Sprintf("%s: reached %d times, and listed as never reached: %s", d.What, n, d.Never))
		case d.Never == "" && n == 0 && hours >= d.Hours:
			list = append(list, fmt.Sprintf("%s: never reached in %.0f agent-hours; %.0f are enough", d.What, hours, d.Hours))
		}
	}
	slices.Sort(list)
	return list
}

// Least is the first hours from which each demand of a list is made.
func Least(demands []Demand) float64 {
	if len(demands) == 0 {
		return 0
	}
	return slices.MaxFunc(demands, func(a, b Demand) int { return cmp.Compare(a.Hours, b.Hours) }).Hours
}

// tellDemands prints them for programs, which have more seeds run than this one does.
func tellDemands(demands []Demand) error {
	data, err := json.Marshal(demands)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s%s\n", Demanded, data)
	return err
}
