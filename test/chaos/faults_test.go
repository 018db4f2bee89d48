package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// clockTime is how times are written.
const clockTime = "15:04:05.000"

// fault is one kind of what goes wrong.
type fault struct {
	kind string
	// inject does it, undoes it, and says to whom it was done; "" when it could not be done
	// just now.
	inject func(ctx context.Context, r *rand.Rand) (whom string)
}

// appointed says when a kind may happen for the nth time, and then comes next; nil where that is
// left to the order that is drawn.
func (one fault) appointed() func(nth int) time.Duration {
	if one.kind == wentBack {
		return goBackAfter
	}
	return nil
}

// lane is a row of faults of which one happens at a time. Lanes do not wait for each other.
type lane struct {
	name        string
	least, most time.Duration // between two
	kinds       []fault
}

// lanes is how many there are; who else draws takes numbers from there on.
const lanes = 4

// faults are what has gone wrong so far.
type faults struct {
	w     *world
	lanes []lane
	file  *os.File // the timeline, as it grows

	mu       sync.Mutex
	timeline []moment
	counts   map[string]int
	backward []time.Time   // when the tree went back
	going    bool          // it is going back just now
	unledBy  int           // how many faults keep the servers without a leader just now
	back     chan struct{} // closed when the tree goes back next
}

// moment is one line of the timeline.
type moment struct {
	at   time.Time
	lane string
	what string
}

func newFaults(w *world) *faults {
	file, err := os.OpenFile(w.path("faults.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.must(err)
	w.t.Cleanup(func() { _ = file.Close() })
	f := &faults{w: w, file: file, counts: map[string]int{}, back: make(chan struct{})}
	f.lanes = []lane{
		{"servers", 3 * time.Second, 6 * time.Second, serverFaults(w)},
		{"launchers", 2 * time.Second, 6 * time.Second, launcherFaults(w)},
		{"builders", time.Second, 3 * time.Second, builderFaults(w)},
		{"site", time.Second, 3 * time.Second, siteFaults(w)},
	}
	return f
}

// draw is the source of what one of those who act does: the same for the same seed.
func draw(number int) *rand.Rand { return rand.New(rand.NewPCG(*seed, uint64(number))) }

// run injects faults until calm ends. Each lane goes round: all of its kinds in an order that
// is drawn, then all in another one.
func (f *faults) run(calm context.Context) {
	var all sync.WaitGroup
	for i, l := range f.lanes {
		all.Go(func() { f.drive(calm, l, draw(i)) })
	}
	all.Wait()
}

func (f *faults) drive(calm context.Context, l lane, r *rand.Rand) {
	var next []fault
	begun := time.Now()
	for pause(calm, r, l.least, l.most) {
		if len(next) == 0 {
			next = slices.DeleteFunc(slices.Clone(l.kinds), func(one fault) bool { return one.appointed() != nil })
			r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		}
		for _, one := range l.kinds {
			if after := one.appointed(); after != nil && time.Since(begun) >= after(f.times(one.kind)) {
				next = slices.Insert(next, 0, one)
			}
		}
		one := next[0]
		next = next[1:]
		f.note(l.name, one.kind+" begins")
		whom := one.inject(calm, r)
		if whom == "" {
			f.note(l.name, one.kind+" was not possible")
			if one.appointed() == nil {
				next = append(next, one) // in this round, if there is time
			}
			continue
		}
		f.note(l.name, one.kind+": "+whom+", is over")
		f.mu.Lock()
		f.counts[one.kind]++
		f.mu.Unlock()
	}
}

// times is how often a kind was injected.
func (f *faults) times(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

// note adds a line to the timeline.
func (f *faults) note(lane, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := moment{time.Now(), lane, what}
	f.timeline = append(f.timeline, m)
	fmt.Fprintln(f.file, m)
}

func (m moment) String() string {
	return fmt.Sprintf("%s %-9s %s", m.at.Format(clockTime), m.lane, m.what)
}

// complete reports whether each kind was injected.
func (f *faults) complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.lanes, func(l lane) bool {
		return slices.ContainsFunc(l.kinds, func(one fault) bool { return f.counts[one.kind] == 0 })
	})
}

// report tells what was injected how often, and fails where a kind never was.
func (f *faults) report() {
	f.w.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lanes {
		var said, never []string
		for _, one := range l.kinds {
			said = append(said, fmt.Sprintf("%s %d", one.kind, f.counts[one.kind]))
			if f.counts[one.kind] == 0 {
				never = append(never, one.kind)
			}
		}
		f.w.t.Logf("%s: %s", l.name, strings.Join(said, ", "))
		if len(never) > 0 {
			f.w.t.Errorf("was never injected: %s", strings.Join(never, ", "))
		}
	}
	for _, what := range f.w.beyond() {
		f.w.t.Logf("NOT TESTED here: %s", what)
	}
}

// show prints the timeline.
func (f *faults) show() {
	f.w.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, m := range f.timeline {
		lines = append(lines, m.String())
	}
	f.w.t.Logf("what was done, and when:\n%s", strings.Join(lines, "\n"))
}

// wentBack notes that the tree is that of an older snapshot, or is about to be.
func (f *faults) wentBack(going bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.going = going
	f.backward = append(f.backward, time.Now())
	close(f.back)
	f.back = make(chan struct{})
}

// inThisTime is a context that ends when the tree goes back, at the latest.
func (f *faults) inThisTime(ctx context.Context) (context.Context, context.CancelFunc) {
	f.mu.Lock()
	back := f.back
	f.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-back:
			cancel(errBack)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// errBack says that the tree has gone back.
var errBack = errors.New("the tree has gone back")

// unled notes that the servers have no leader, until led is called.
func (f *faults) unled() (led func()) {
	count := func(by int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unledBy += by
	}
	count(1)
	return func() { count(-1) }
}

// isUnled reports whether the servers have no leader, as far as we know.
func (f *faults) isUnled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unledBy > 0
}

// isGoing reports whether the tree is going back just now.
func (f *faults) isGoing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.going
}

// backs are the times at which the tree went back.
func (f *faults) backs() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.backward)
}

// pause waits for some time between the two; false when ctx ends first.
func pause(ctx context.Context, r *rand.Rand, least, most time.Duration) bool {
	return wait(ctx, least+time.Duration(r.Int64N(int64(most-least)+1)))
}

// wait waits for d; false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// one draws one of several.
func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
