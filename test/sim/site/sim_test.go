package site

import (
	"flag"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/stage"
)

var (
	first = flag.Uint64("sim.seed", 1, "the first seed")
	count = flag.Int("sim.count", 3, "how many seeds, from the first on")
	hours = flag.Float64("sim.hours", 0, "agent-hours to simulate, instead of a count of seeds")
	shown = flag.Bool("sim.timeline", false, "show the timeline of each seed")
	logs  = flag.Bool("sim.logs", false, "have what launchers log in the timeline")
)

// length is how long there are faults.
const length = 20 * time.Minute

// Mistakes: whatever the judge knows to be wrong.
func TestSite(t *testing.T) {
	var lived time.Duration
	began, counts, moves := time.Now(), map[string]int{}, map[string]int{}
	n := 0
	for seed := *first; ; seed++ {
		if *hours > 0 && lived.Hours() >= *hours || *hours == 0 && n == *count {
			break
		}
		n++
		o := simulate(t, seed)
		lived += o.took * (launchers + requestors)
		for name, times := range maps.All(o.line.Counts()) {
			counts[name] += times
		}
		for name, times := range maps.All(o.moves) {
			moves[name] += times
		}
		if *shown {
			t.Log("\n" + strings.Join(o.line.Lines(), "\n"))
		}
		if wrongs := o.line.Wrongs(); len(wrongs) > 0 {
			t.Fatalf("seed %d: %d wrongs; the first, and what led to it:\n%s\nall:\n%s", seed, len(wrongs), o.line.LeadUp(), strings.Join(wrongs, "\n"))
		}
	}
	took := time.Since(began)
	t.Logf("%d seeds from %d: %.1f agent-hours in %s (%.0f a minute); %s; moves: %s",
		n, *first, lived.Hours(), took.Round(time.Millisecond), lived.Hours()/took.Minutes(), stage.Sorted(counts), stage.Sorted(moves))
}

// simulate runs one seed in a bubble.
func simulate(t *testing.T, seed uint64) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { o = run(t, seed, length) })
	return o
}
