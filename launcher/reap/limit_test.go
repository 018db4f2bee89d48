package reap

import (
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A held node stays for the shorter of the two limits; a limit that is not set limits nothing.
// Mistake: a node that its holder gave an hour is kept for ever, or one without a limit goes at once.
func TestHoldLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ own, most, want time.Duration }{
		{0, 0, 0},
		{0, time.Hour, time.Hour},
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Hour, time.Minute},
		{2 * time.Hour, time.Hour, time.Hour},
		{-time.Minute, 0, 0},
		{-time.Minute, time.Hour, time.Hour},
		{time.Minute, -1, time.Minute},
		{0, -1, 0},
	} {
		n := aNode(zkmodel.NodeHold)
		n.HoldExpiration = zkmodel.Seconds(c.own / time.Second)
		if got := holdLimit(n, c.most); got != c.want {
			t.Errorf("own limit %v, at most %v: %v, want %v", c.own, c.most, got, c.want)
		}
	}
}

// Where a node has several labels, the shortest age counts; a label without one does not.
func TestReadyByTheShortestAge(t *testing.T) {
	t.Parallel()
	written := time.Unix(2_000_000_000, 0)
	n := aNode(zkmodel.NodeReady)
	n.StateTime, n.Stat = zkmodel.EpochOf(written), recipe.Stat{Mtime: written}
	ages := map[string]time.Duration{"long": 2 * time.Hour, "short": time.Hour, "none": 0}
	for _, c := range []struct {
		labels []string
		want   time.Duration
	}{
		{[]string{"none", "long", "short"}, time.Hour},
		{[]string{"short", "long", "none"}, time.Hour},
		{[]string{"long"}, 2 * time.Hour},
		{[]string{"none", "unknown"}, 0},
	} {
		n.Type = c.labels
		duty, _, due := Ready(n, Rules{Ages: Ages{Ready: ages}})
		if c.want == 0 {
			if duty != DutyNone {
				t.Errorf("%v: %v, want nothing", c.labels, duty)
			}
		} else if duty != DutySettle || !due.Equal(written.Add(c.want)) {
			t.Errorf("%v: %v at %v, want %v later", c.labels, duty, due, c.want)
		}
	}
}

// The youngest thing in the tree says how late our clock is at the least, be it a node or a request. One that is early is no
// less so for that.
func TestBehind(t *testing.T) {
	t.Parallel()
	now := time.Unix(2_000_000_000, 0)
	stat := func(ahead time.Duration) recipe.Stat { return recipe.Stat{Mtime: now.Add(ahead)} }
	for _, c := range []struct{ node, request, measured, want time.Duration }{
		{-time.Hour, -time.Minute, 0, 0},
		{time.Minute, -time.Hour, 0, time.Minute},
		{-time.Hour, time.Minute, 0, time.Minute},
		{time.Minute, time.Second, 0, time.Minute},
		{-time.Hour, -time.Hour, 10 * time.Second, 10 * time.Second},
		{-time.Hour, -time.Hour, -10 * time.Second, -10 * time.Second},
		{-time.Hour, -8 * time.Second, -10 * time.Second, -8 * time.Second},
		{-time.Hour, -time.Hour, -2 * time.Minute, -2 * time.Minute},
	} {
		s := &schedule.Snapshot{Now: now, Lag: c.measured, Nodes: []*zkmodel.Node{{Stat: stat(c.node)}}, Requests: []*zkmodel.Request{{Stat: stat(c.request)}}}
		if got := Behind(s); got != c.want {
			t.Errorf("node %v and request %v ahead, measured %v: %v, want %v", c.node, c.request, c.measured, got, c.want)
		}
	}
}

// Why an idle node goes: that its cloud has taken its machine comes before what people and files say. One of two nodes.
func TestUselessSaysWhy(t *testing.T) {
	t.Parallel()
	one, other := aNode(zkmodel.NodeReady), aNode(zkmodel.NodeReady)
	one.ID, other.ID = "1", "2"
	rules := Rules{Interrupted: map[string]string{"1": "spot interruption"}, Judged: map[string]string{"1": "rejected", "2": "rejected"}}
	if why := rules.Useless(one); why != "spot interruption" {
		t.Errorf("taken by its cloud: %q", why)
	}
	if why := rules.Useless(other); why != "its build was rejected" {
		t.Errorf("of a rejected build: %q", why)
	}
}
