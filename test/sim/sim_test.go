package sim

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
	count = flag.Int("sim.count", 10, "how many seeds, from the first on")
	hours = flag.Float64("sim.hours", 0, "agent-hours to simulate, instead of a count of seeds")
	shown = flag.Bool("sim.timeline", false, "show the timeline of each seed")
)

const (
	agents = 3
	length = 10 * time.Minute
)

// Mistakes: whatever the judge knows to be wrong. It tells the seed, which repeats it.
func TestLocks(t *testing.T) {
	var lived time.Duration
	began, faults, writes, effects, turns := time.Now(), map[string]int{}, 0, 0, 0
	n := 0
	for seed := *first; ; seed++ {
		if *hours > 0 && lived.Hours() >= *hours || *hours == 0 && n == *count {
			break
		}
		n++
		o := simulate(t, seed)
		lived += o.took * agents
		writes, effects, turns = writes+o.writes, effects+o.effects, turns+o.turns
		for name, times := range maps.All(o.line.Counts()) {
			faults[name] += times
		}
		if *shown {
			t.Log("\n" + strings.Join(o.line.Lines(), "\n"))
		}
		if len(o.line.Wrongs()) > 0 {
			t.Fatalf("seed %d: %d wrongs; the first, and what led to it:\n%s", seed, len(o.line.Wrongs()), o.line.LeadUp())
		}
	}
	took := time.Since(began)
	t.Logf("%d seeds from %d: %.1f agent-hours in %s (%.0f a minute), %d locks held, %d writes, %d effects; faults: %s",
		n, *first, lived.Hours(), took.Round(time.Millisecond), lived.Hours()/took.Minutes(), turns, writes, effects, stage.Sorted(faults))
}

// simulate runs one seed in a bubble.
func simulate(t *testing.T, seed uint64) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o = run(t, seed, agents, length)
	})
	return o
}
