package launcher_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// takeoverTime is how long the others may take until they have all in hand that
	// a killed launcher left: its session's time-out and a second.
	takeoverTime = crashSession + time.Second
	// loaded is by how much longer a machine may take that runs many tests at once.
	loaded = 3
)

// takeovers are how long it took the others to take over, by what was killed when.
type takeovers struct {
	mu   sync.Mutex
	took map[int]map[step.Step]time.Duration
}

// note keeps a figure, and fails the test if it is too long. Of one launcher
// alone, the next must start first, which is not counted against it.
func (f *takeovers) note(t *testing.T, at step.Step, count int, took time.Duration) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.took == nil {
		f.took = map[int]map[step.Step]time.Duration{1: {}, 3: {}}
	}
	f.took[count][at] = took
	if limit := loaded * takeoverTime; count > 1 && took > limit {
		t.Errorf("taken over after %s, want %s at most", took, limit)
	}
}

// print shows the figures.
func (f *takeovers) print(t *testing.T) {
	t.Helper()
	for count, took := range f.took {
		if len(took) == 0 {
			continue
		}
		all := slices.Sorted(maps.Values(took))
		t.Logf("%d launchers: taken over within %s (median) and %s (at most), the session's time-out included; want %s",
			count, all[len(all)/2], all[len(all)-1], takeoverTime)
	}
}

// takenOver waits until others have all in hand that a launcher, which died then,
// has left, and tells how long that took.
func (s *site) takenOver(dead string, at time.Time) time.Duration {
	s.t.Helper()
	why := "?"
	defer func() {
		if s.t.Failed() {
			s.t.Logf("not taken over: %s", why)
		}
	}()
	var now time.Time
	zktest.Eventually(s.t, func() bool {
		now = time.Now()
		why = s.unattended(dead)
		return why == ""
	}, "others have what %s had", dead)
	return now.Sub(at)
}

// unattended names something that needs a launcher and that none has, or "".
// What a dead launcher had locked is its own until its session is over.
func (s *site) unattended(dead string) string {
	ctx := s.t.Context()
	session := s.store.Session()
	there, err := session.Children(ctx, zkmodel.ComponentsRoot+"/"+zkmodel.KindLauncher)
	if err != nil {
		s.t.Fatal(err)
	}
	if slices.ContainsFunc(there, func(name string) bool { return strings.HasPrefix(name, dead) }) {
		return "the session of " + dead
	}
	requests, err := s.store.Requests(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	owners := map[string]bool{}
	for _, r := range requests {
		owners[r.ID] = true
		if r.State != zkmodel.RequestPending && r.State != zkmodel.RequestRequested {
			continue
		}
		if locked, err := recipe.Locked(ctx, session, zkmodel.RequestLockPath(r.ID)); err != nil || !locked {
			return "request " + r.ID + ", which is " + string(r.State)
		}
	}
	for _, n := range s.nodes() {
		free := n.State == zkmodel.NodeReady && (n.AllocatedTo == "" || owners[n.AllocatedTo])
		inHand := n.Locked || owners[n.AllocatedTo] && n.State == zkmodel.NodeInit // under the request's lock
		if !free && !inHand {
			return "node " + n.ID + ", which is " + string(n.State)
		}
	}
	return ""
}

// launching lists the nodes that belong to a request, by id.
func (s *site) launching() []string {
	s.t.Helper()
	var ids []string
	for _, n := range s.nodes() {
		if n.AllocatedTo != "" {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Each of three launchers that is killed is followed by another in time.
func TestTakenOverInTime(t *testing.T) {
	t.Parallel()
	const want = loaded * takeoverTime
	s, c := newCrashSite(t, onePool)
	s.image()
	c.At = step.Created
	for _, c.Name = range []string{"one", "two", "three"} {
		c.spawn(t)
	}
	zktest.Eventually(t, func() bool { return len(s.pools()) == 3 }, "three pools registered")
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	dead, at := c.died(t)
	left := s.launching()
	took := s.takenOver(dead, at)
	if out := s.wait(id); !slices.Equal(out.Nodes, left) {
		t.Errorf("served with nodes %v, the launcher that was killed left %v", out.Nodes, left)
	}
	t.Logf("taken over %s after the kill, served after %s", took, time.Since(at))
	if took > want {
		t.Errorf("taken over %s after the kill, want %s at most", took, want)
	}
	s.settled()
}
