package series

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/stage"
)

var (
	first   = flag.Uint64("sim.seed", 1, "the first seed")
	count   = flag.Int("sim.count", 0, "how many seeds, from the first on; 0 is as many as are fixed")
	hours   = flag.Float64("sim.hours", 0, "agent-hours to simulate, instead of a count of seeds")
	shown   = flag.Bool("sim.timeline", false, "show the timeline of each seed")
	part    = flag.Float64("sim.part", 1, "which part of its time each world lives; nothing is demanded of less than all")
	only    = flag.String("sim.only", "", "the only faults that are made, as 1,2,5-7; 0 is none")
	reports = flag.Bool("sim.report", false, "print a Report of each seed, for programs; with it each has a hash")
)

// Report is what programs are told of a simulation, as a line of JSON behind Mark.
type Report struct {
	Seed     uint64         `json:"seed"`
	Hours    float64        `json:"hours"` // of all agents
	Hash     string         `json:"hash"`  // of the whole timeline
	Wrongs   []string       `json:"wrongs,omitempty"`
	Faults   []int          `json:"faults"`             // the numbers of those that were made
	Timeline []string       `json:"timeline,omitempty"` // of one that went wrong, or if it is asked for
	Counts   map[string]int `json:"counts"`
}

// What begins the lines that are for programs.
const (
	// Begun begins the line that is printed before a seed, with its number.
	Begun = "SIMULATION "
	// Mark begins that of a Report.
	Mark = "REPORT "
	// Demanded begins the one that is printed first, a list of Demand.
	Demanded = "DEMANDED "
)

// briefly is the part that is lived with the race detector, with which all takes ten times as long.
const briefly = 0.1

// Run simulates one seed after the other, each in a bubble of testing/synctest, as flags want
// it; as many as are fixed, where they say nothing, and with the race detector the beginning of
// one (FindPlanted has the fixed ones run without it). It ends with the first in which something was wrong. In the end the seeds together must have
// reached what is demanded of so many hours, unless some faults were left out.
func Run(t *testing.T, fixed int, simulate func(t *testing.T, s *Seed), demands ...Demand) {
	t.Helper()
	lives := *part
	if *count > 0 {
		fixed = *count
	} else if raced && *hours == 0 {
		fixed, lives = 1, briefly
	}
	list, err := Numbers(*only)
	if err != nil {
		t.Fatalf("-sim.only: %v", err)
	}
	var wanted map[int]bool
	if *only != "" {
		wanted = map[int]bool{}
		for _, n := range list {
			wanted[n] = true
		}
	}
	if *reports {
		if err := tellDemands(demands); err != nil {
			t.Fatal(err)
		}
	}
	began, lived, counts, n := time.Now(), time.Duration(0), map[string]int{}, 0
	for seed := *first; ; seed++ {
		if *hours > 0 && lived.Hours() >= *hours || *hours == 0 && n == fixed {
			break
		}
		n++
		if *reports {
			fmt.Printf("%s%d\n", Begun, seed)
		}
		s := one(t, seed, lives, wanted, simulate)
		lived += time.Duration(s.lived.Load())
		for name, n := range s.Counts() {
			counts[name] += n
		}
		s.tell(t)
	}
	took := time.Since(began)
	t.Logf("%d seeds from %d: %.1f agent-hours in %s (%.0f a minute); %s",
		n, *first, lived.Hours(), took.Round(time.Millisecond), lived.Hours()/took.Minutes(), stage.Sorted(counts))
	if *reports || *only != "" || lives < 1 {
		return // who reads the reports adds them up
	}
	for _, what := range Unmet(demands, counts, lived.Hours()) {
		t.Error(what)
	}
}

// one runs one seed.
func one(t *testing.T, number uint64, part float64, wanted map[int]bool, simulate func(t *testing.T, s *Seed)) (s *Seed) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = newSeed(number, wanted)
		s.part = part
		simulate(t, s)
	})
	return s
}

// tell shows what is asked for, and fails the test if something was wrong.
func (s *Seed) tell(t *testing.T) {
	t.Helper()
	if *reports {
		if err := s.report(); err != nil {
			t.Fatal(err)
		}
	} else if *shown {
		t.Log("\n" + strings.Join(s.Lines(), "\n"))
	}
	if wrongs := s.Wrongs(); len(wrongs) > 0 {
		t.Fatalf("seed %d: %d wrongs; the first, and what led to it:\n%s", s.Number, len(wrongs), s.LeadUp())
	}
}

// report prints a Report.
func (s *Seed) report() error {
	r := Report{
		Seed: s.Number, Hours: time.Duration(s.lived.Load()).Hours(), Hash: s.Hash(),
		Wrongs: s.Wrongs(), Faults: s.Timeline.Faults(), Counts: s.Counts(),
	}
	if *shown || len(r.Wrongs) > 0 {
		r.Timeline = s.Lines()
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s%s\n", Mark, data)
	return err
}

// Numbers reads a list such as 1,2,5-7.
func Numbers(text string) (list []int, err error) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		from, to, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(from)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(to)
		}
		if err != nil || high < low {
			return nil, fmt.Errorf("%q is neither a number nor a range", part)
		}
		for n := low; n <= high; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// Ranges is a set of numbers as -sim.only takes it.
func Ranges(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
