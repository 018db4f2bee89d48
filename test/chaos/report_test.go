package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// compared is how many requests of a priority tell something about how long they
// wait.
const compared = 30

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
	v.t.Logf("%6.1f s at most: no request fulfilled, although one waited that could be", v.flow.longest.Seconds())
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
