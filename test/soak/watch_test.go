package soak

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel/recipe"
)

const (
	// lookEvery is how often the tree and the clouds are looked at.
	lookEvery = 200 * time.Millisecond
	// oddTime is how long something may be odd: until what was killed has come
	// back or was noticed, and its successor, perhaps killed too, has cleaned up.
	oddTime = 30 * time.Second
	// freshTime is how long a node that a patient requestor gave back, as a server
	// went, may lie in stock beside the others.
	freshTime = 20 * time.Second
	// mostErrors are shown; the rest is counted.
	mostErrors = 30
)

// watch looks at the clouds and the tree all the time.
type watch struct {
	t       *testing.T
	limited bool
	client  *recipe.Client
	clouds  map[string]*fake.Provider

	mu     sync.Mutex
	counts map[string]int
	taken  map[string]string        // node to who was given it; ids are never used again
	kept   map[string]time.Time     // node to when it may go at the earliest
	spared time.Time                // when a node of shelf was last given back
	waits  map[int][]time.Duration  // of plain requests, by priority
	since  map[string]time.Time     // what is odd, since when
	oddest map[string]time.Duration // how long things were odd at most, by why
}

func newWatch(t *testing.T, w *world) *watch {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: w.ensemble.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	v := &watch{
		t: t, limited: w.limited, client: client, clouds: map[string]*fake.Provider{}, counts: map[string]int{},
		taken: map[string]string{}, kept: map[string]time.Time{}, waits: map[int][]time.Duration{},
		since: map[string]time.Time{}, oddest: map[string]time.Duration{},
	}
	for _, name := range []string{"east", "west"} {
		cloud, err := fake.New(configs.Provider{Name: name, Settings: &configs.FakeDriver{Dir: w.clouds}}, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		v.clouds[name] = cloud
		t.Cleanup(func() {
			if err := cloud.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return v
}

// run checks what must always hold, until ctx ends.
func (v *watch) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		l, err := v.glance(ctx)
		if l != nil {
			v.count("looks")
			machineRules(l, v.wrong)
		}
		switch {
		case err == nil:
			v.count("looks at one moment")
			v.check(l)
		case errors.Is(err, errMoving):
			v.count("looks while something moved")
		default: // no server, as a rule
			v.count("looks in vain")
		}
	}
}

// check holds one moment against the rules.
func (v *watch) check(l *look) {
	recordRules(l, v.limited, v.wrong)
	requestRules(l, v.wrong)
	v.mu.Lock()
	strict := time.Since(v.spared) > freshTime
	kept := maps.Clone(v.kept)
	v.mu.Unlock()
	stockRules(l, strict, v.wrong)
	for id, until := range kept {
		if l.by.Before(until) && l.node(id) == nil && v.release(id) {
			v.wrong("node %s went %s before its hold was over", id, until.Sub(l.by))
		}
	}
	v.grumble(l)
}

// grumble complains once of what is odd for too long.
func (v *watch) grumble(l *look) {
	odd := oddities(l)
	for what := range v.since {
		if odd[what] == "" {
			delete(v.since, what)
		}
	}
	for what, why := range odd {
		first, known := v.since[what]
		if !known {
			first = l.at
			v.since[what] = first
		}
		age := l.at.Sub(first)
		if before := v.oddest[why]; age > oddTime && before <= oddTime {
			v.wrong("%s: %s for %s", what, why, age)
		}
		v.oddest[why] = max(v.oddest[why], age)
	}
}

// wrong notes what must not happen.
func (v *watch) wrong(format string, args ...any) {
	v.t.Helper()
	if v.count("violations") <= mostErrors {
		v.t.Errorf(time.Now().Format("15:04:05.000 ")+format, args...)
	}
}

// count counts, and tells how many there are now.
func (v *watch) count(what string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[what]++
	return v.counts[what]
}

// take notes who was given a node; false when somebody was before.
func (v *watch) take(node, who string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	first := v.taken[node] == ""
	v.taken[node] = who
	return first
}

// keep notes until when a node is held.
func (v *watch) keep(node string, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[node] = until
}

// release forgets that a node is held; false when it was forgotten before.
func (v *watch) release(node string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, there := v.kept[node]
	delete(v.kept, node)
	return there
}

// spare notes that a node of shelf may have come back.
func (v *watch) spare() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.spared = time.Now()
}

// served notes how long a request took.
func (v *watch) served(w wish, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.plain {
		v.waits[w.Priority] = append(v.waits[w.Priority], took)
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
	if first, last := v.waits[100], v.waits[300]; len(first) >= compared && len(last) >= compared && mean(first) > mean(last) {
		v.t.Errorf("the most urgent requests waited longer than the least urgent")
	}
	if v.counts["jobs done"] == 0 || v.counts["looks at one moment"] == 0 {
		v.t.Error("no job was done, or nobody looked")
	}
}

// compared is how many requests of a priority tell something about how long they
// wait.
const compared = 30

// mean is the mean of some times.
func mean(list []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(len(list), 1))
}
