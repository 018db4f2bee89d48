package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
)

// Hunt simulates many seeds natively.
type Hunt struct {
	Native Native
	Seed   uint64 // the first
	Hours  float64
	Jobs   int // programs at a time
	Env    []string

	mu      sync.Mutex
	next    uint64
	lived   float64
	seeds   int // that are done
	begun   int // that are not
	counts  map[string]int
	demands []series.Demand
	cpu     time.Duration
	failed  *Result
}

// atOnce is how many seeds a program simulates at most, so that its start does not matter.
const atOnce = 20

// ErrTime is why a hunt ends early that had no more time: what it has done counts.
var ErrTime = errors.New("the time for it is over")

// Go simulates until one fails, or all hours are over, or a context ends whose cause is ErrTime.
func (h *Hunt) Go(ctx context.Context) (failed *Result, err error) {
	h.next, h.counts = h.Seed, map[string]int{}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for range h.Jobs {
		group.Go(func() error {
			for {
				r, more := h.turn()
				if !more {
					return nil
				}
				found, err := h.Native.Run(ctx, r)
				switch over := errors.Is(err, ErrTime); {
				case err != nil && !over && h.caught():
					return nil
				case err != nil && !over:
					return err
				case h.note(r, found):
					stop()
				case over:
					return nil
				}
			}
		})
	}
	err = group.Wait()
	return h.failed, err
}

// turn is what to simulate next: so little in the end that all programs end together.
func (h *Hunt) turn() (r Run, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r = Run{Seed: h.next, Count: 1, Env: h.Env}
	if h.seeds > 0 {
		left := (h.Hours-h.lived)/(h.lived/float64(h.seeds)) - float64(h.begun)
		if left <= 0 {
			return r, false
		}
		r.Count = min(atOnce, 1+int(left)/(2*h.Jobs))
	}
	if h.failed != nil {
		return r, false
	}
	h.next += uint64(r.Count)
	h.begun += r.Count
	return r, true
}

// note adds up what was found, and reports whether something was wrong.
func (h *Hunt) note(asked Run, r Result) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun -= asked.Count
	for _, one := range r.Reports {
		h.seeds++
		h.lived += one.Hours
		for what, n := range one.Counts {
			h.counts[what] += n
		}
	}
	h.cpu += r.CPU
	if r.Demands != nil {
		h.demands = r.Demands
	}
	if r.Failed && (h.failed == nil || r.Seed < h.failed.Seed) {
		h.failed = &r
	}
	return r.Failed
}

// Unmet says what all seeds together have not reached that they have to, see series.Unmet.
func (h *Hunt) Unmet() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return series.Unmet(h.demands, h.counts, h.lived)
}

func (h *Hunt) caught() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed != nil
}

// Tell prints what was simulated.
func (h *Hunt) Tell(to io.Writer, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(to, "%s: %.1f agent-hours, %d seeds from %d, in %s: %.0f a minute, %.3f s of CPU an hour; %s\n",
		h.Native.Name, h.lived, h.seeds, h.Seed, took.Round(time.Second/10), h.lived/took.Minutes(), h.cpu.Seconds()/max(h.lived, 0.001), stage.Sorted(h.counts))
	if least := series.Least(h.demands); len(h.demands) > 0 && h.lived < least {
		fmt.Fprintf(to, "%s: all of the %d things that seeds have to reach are asked of %.0f agent-hours or more\n", h.Native.Name, len(h.demands), least)
	}
}

// Failure is a seed that went wrong, and how it is repeated.
type Failure struct {
	Native Native
	Sealed *Sealed
	Found  Result // natively
	Jobs   int
	Env    []string
	// Patience is how long each of the three steps may go on: trying again, looking for an order,
	// shrinking. 0 is five minutes.
	Patience time.Duration
}

// How often a failure is tried again, and with how many orders it is looked for under WASI.
const (
	tries    = 20
	orders   = 100
	shrinkBy = 200
)

// Say tells what was found, and how to have it again: what must be known before there is time to explain it.
func (f *Failure) Say(to io.Writer) {
	fmt.Fprintf(to, "%s: seed %d went wrong: %s\nnatively it may come again with: go run ./test/sim/hunt -world %s -seed %d -hours 0.01\n",
		f.Native.Name, f.Found.Seed, first(f.Found), f.Native.Name, f.Found.Seed)
}

// LeadUp is what happened natively before it went wrong.
func (f *Failure) LeadUp() string { return f.Found.text() }

// Explain repeats the failure, shrinks the list of its faults, and prints all of it.
func (f *Failure) Explain(ctx context.Context, to io.Writer) error {
	seed, kind := f.Found.Seed, f.Found.Kind()
	f.Patience = max(f.Patience, 5*time.Minute)
	tried, again, alike, err := f.repeat(ctx, kind, func(ctx context.Context, _ int) (Result, error) {
		return f.Native.Run(ctx, Run{Seed: seed, Env: f.Env})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "natively: %d of %d runs go wrong again, %d of them in this way\n", again, tried, alike)
	order, found, err := f.order(ctx, to, seed, kind)
	if err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(to, "in wasip1 it was not seen; this is what happened natively:\n%s\n", f.Found.text())
		return nil
	}
	kind = found.Kind()
	run := Run{Seed: seed, Order: order, Env: f.Env}
	last, ok := found.Last()
	if !ok { // it ended without a report, so nobody knows its faults
		fmt.Fprintf(to, "again, each time: make sim WORLD=%s SEED=%d ORDER=%d\n%s\n", f.Native.Name, seed, order, found.text())
		return nil
	}
	asked, until := 0, time.Now().Add(f.Patience)
	run.Only = Shrink(last.Faults, shrinkBy, func(part []int) bool {
		if time.Now().After(until) {
			return false
		}
		asked++
		r := run
		r.Only = exactly(part)
		smaller, err := f.Sealed.Run(ctx, r)
		if err != nil || smaller.Kind() != kind {
			return false
		}
		found = &smaller
		return true
	})
	fmt.Fprintf(to, "of %d faults it needs %d (after %d runs); again, each time: make sim WORLD=%s SEED=%d ORDER=%d ONLY=%s\n%s\n",
		len(last.Faults), len(run.Only), asked, f.Native.Name, seed, order, onlyText(run.Only), found.text())
	return nil
}

// exactly is a list of faults for a Run, for which no list is all of them: none is an empty one.
func exactly(part []int) []int { return append([]int{}, part...) }

// repeat tries several at a time.
func (f *Failure) repeat(ctx context.Context, kind string, try func(ctx context.Context, n int) (Result, error)) (tried, failed, alike int, err error) {
	var mu sync.Mutex
	until := time.Now().Add(f.Patience)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(f.Jobs, 1))
	for n := range tries {
		group.Go(func() error {
			if time.Now().After(until) {
				return nil
			}
			r, err := try(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			tried++
			if r.Failed {
				failed++
			}
			if r.Failed && r.Kind() == kind {
				alike++
			}
			return err
		})
	}
	err = group.Wait()
	return tried, failed, alike, err
}

// order looks for an order in which the seed fails under WASI: of the kind, if there is one.
func (f *Failure) order(ctx context.Context, to io.Writer, seed uint64, kind string) (order uint64, found *Result, err error) {
	var mu sync.Mutex
	results := map[uint64]Result{}
	tried, failed, alike, err := f.repeat(ctx, kind, func(ctx context.Context, n int) (Result, error) {
		r, err := f.Sealed.Run(ctx, Run{Seed: seed, Order: uint64(n), Env: f.Env})
		mu.Lock()
		defer mu.Unlock()
		if r.Failed {
			results[uint64(n)] = r
		}
		return r, err
	})
	if err != nil {
		return 0, nil, err
	}
	fmt.Fprintf(to, "in wasip1: %d of %d orders go wrong, %d of them in this way; each order repeats to the last event\n", failed, tried, alike)
	until := time.Now().Add(f.Patience)
	for n := uint64(tries); len(results) == 0 && n < orders && time.Now().Before(until); n++ {
		r, err := f.Sealed.Run(ctx, Run{Seed: seed, Order: n, Env: f.Env})
		if err != nil {
			return 0, nil, err
		}
		if r.Failed {
			results[n] = r
		}
	}
	for n := range uint64(orders) {
		if r, ok := results[n]; ok && (found == nil || r.Kind() == kind && found.Kind() != kind) {
			order, found = n, &r
		}
	}
	return order, found, nil
}

// first is the first wrong, or what the program said as it ended.
func first(r Result) string {
	if last, ok := r.Last(); ok && len(last.Wrongs) > 0 {
		return strings.TrimSpace(last.Wrongs[0])
	}
	return r.Kind()
}

// shownLines is how much of a timeline is shown before the first wrong.
const shownLines = 200

// text is the timeline up to the first wrong, or what the program has said.
func (r Result) text() string {
	last, ok := r.Last()
	if !ok || len(last.Wrongs) == 0 {
		return r.Output
	}
	at := slices.Index(last.Timeline, last.Wrongs[0])
	return strings.Join(last.Timeline[max(0, at-shownLines):at+1], "\n")
}
