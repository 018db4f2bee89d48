package series

import (
	"strings"
	"testing"
)

// Mistakes: what was never reached is not told, or is asked of too few hours; what cannot be reached is
// believed although it was.
func TestUnmetDemands(t *testing.T) {
	demands := []Demand{{What: "a", Hours: 10}, {What: "b", Hours: 100}, {What: "c", Never: "it is too rare"}}
	for _, c := range []struct {
		hours  float64
		counts map[string]int
		want   string
	}{
		{9, nil, ""},
		{10, map[string]int{"a": 1}, ""},
		{10, map[string]int{"b": 1}, "a"},
		{100, nil, "a b"},
		{100, map[string]int{"a": 2, "b": 1}, ""},
		{1, map[string]int{"c": 1}, "c"},
	} {
		var got []string
		for _, line := range Unmet(demands, c.counts, c.hours) {
			what, _, _ := strings.Cut(line, ":")
			got = append(got, what)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%v of %.0f hours: %q is told, want %q", c.counts, c.hours, text, c.want)
		}
	}
	if got := Least(demands); got != 100 {
		t.Errorf("all is demanded from %.0f hours on", got)
	}
}
