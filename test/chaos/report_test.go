package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// flowStep is the time by which fulfilled requests are counted.
	flowStep = 10 * time.Second
	// stillTime is how long none may be fulfilled.
	stillTime = time.Minute
	// compared is how many requests of a priority tell something about how long they
	// wait.
	compared = 30
)

// flow is how many requests are fulfilled.
type flow struct {
	mu    sync.Mutex
	begun time.Time
	last  time.Time
	steps []int
}

// begin is when requestors begin, end when they do not ask any more.
func (f *flow) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.last = time.Now(), time.Now()
}

func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Time{}
}

// fulfilled counts one.
func (f *flow) fulfilled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun.IsZero() {
		return
	}
	f.last = time.Now()
	at := int(time.Since(f.begun) / flowStep)
	for len(f.steps) <= at {
		f.steps = append(f.steps, 0)
	}
	f.steps[at]++
}

// check complains where none was for too long.
func (f *flow) check(wrong report) {
	f.mu.Lock()
	still := !f.begun.IsZero() && time.Since(f.last) > stillTime
	if still {
		f.last = time.Now()
	}
	f.mu.Unlock()
	if still {
		wrong("no request was fulfilled for %s", stillTime)
	}
}

// report tells what has happened, and fails when nothing has.
func (v *watch) report() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		v.t.Logf("%6d %s", v.counts[what], what)
	}
	for _, why := range slices.Sorted(maps.Keys(v.oddest)) {
		v.t.Logf("%6.1f s at most: %s", v.oddest[why].Seconds(), why)
	}
	for _, priority := range slices.Sorted(maps.Keys(v.waits)) {
		list := v.waits[priority]
		v.t.Logf("%6.1f s mean, %.1f s at most: %d requests of priority %d", mean(list).Seconds(), slices.Max(list).Seconds(), len(list), priority)
	}
	v.t.Logf("%6d machines and images were without a record, as the tree went back or one was deleted by hand", len(v.excused))
	v.t.Logf("requests fulfilled, each %s: %s", flowStep, fmt.Sprint(v.flow.steps))
	if first, last := v.waits[100], v.waits[300]; len(first) >= compared && len(last) >= compared && mean(first) > mean(last) {
		v.t.Errorf("the most urgent requests waited longer than the least urgent")
	}
	if v.counts["jobs done"] == 0 || v.counts["looks at one moment"] == 0 || v.counts["looks at images"] == 0 {
		v.t.Error("no job was done, or nobody looked")
	}
	if v.w.builds.most == 0 {
		v.t.Error("no build was seen")
	}
}

// mean is the mean of some times.
func mean(list []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(len(list), 1))
}
