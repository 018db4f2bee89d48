package reap

import (
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A record that was never begun goes soon when its request or its launcher is
// gone, late while both are there, and not at all while the request is launched.
func TestNodesThatWereNeverBegun(t *testing.T) {
	written := time.Unix(1000, 0)
	for _, tc := range []struct {
		name     string
		request  zkmodel.RequestState // "" is gone
		launcher string
		after    time.Duration // 0 is never
	}{
		{"in launch", zkmodel.RequestPending, "launcher-cloud-main", 0},
		{"in launch of another", zkmodel.RequestPending, "gone", 0},
		{"request gone", "", "launcher-cloud-main", lossTime},
		{"launcher gone", zkmodel.RequestRequested, "gone", lossTime},
		{"both there", zkmodel.RequestRequested, "launcher-cloud-main", orphanTime},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := aNode(zkmodel.NodeInit)
			n.AllocatedTo, n.Launcher, n.Stat.Mtime = "200-1", tc.launcher, written
			s := &schedule.Snapshot{
				Nodes:      []*zkmodel.Node{n},
				Registered: []*zkmodel.Component{{ID: "launcher-cloud-main", ProviderName: "cloud"}},
			}
			if tc.request != "" {
				s.Requests = []*zkmodel.Request{{ID: "200-1", State: tc.request}}
			}
			rules := Rules{Served: map[string]bool{"cloud": true}}
			nobodys := func(string) bool { return false }
			s.Now = written.Add(tc.after - 1)
			if list, again := Due(s, NewDuties(), nobodys, rules); len(list) > 0 || tc.after > 0 && !again.Equal(written.Add(tc.after)) {
				t.Errorf("before: %v, again at %s", list, again)
			}
			s.Now = written.Add(time.Hour)
			list, _ := Due(s, NewDuties(), nobodys, rules)
			if gone := len(list) == 1 && list[0].Duty == DutyRecover; gone != (tc.after > 0) {
				t.Errorf("at last: %v", list)
			}
		})
	}
}

// A node in launch that is unlocked is left to the registered launcher of Nodepool that launches it, for a grace period
// that begins when it is seen unlocked, however old its record is.
func TestNodesInLaunchAreLeftToNodepool(t *testing.T) {
	t.Parallel()
	written := time.Unix(2_000_000_000, 0)
	seen := written.Add(time.Hour)
	due := func(state zkmodel.NodeState, knows zkmodel.Strings, now time.Time, left *map[string]time.Time) ([]Reaping, time.Time) {
		n := aNode(state)
		n.Stat, n.Launcher = recipe.Stat{Mtime: written}, "nl01"
		s := &schedule.Snapshot{
			Now: now, Nodes: []*zkmodel.Node{n}, Registered: []*zkmodel.Component{{ID: "other"}, {ID: "nl01", Knows: knows}},
		}
		*left = LeftToNodepool(s, *left)
		return Due(s, NewDuties(), func(string) bool { return false }, Rules{Served: map[string]bool{"cloud": true}, LeftUntil: *left})
	}
	for _, state := range []zkmodel.NodeState{zkmodel.NodeBuilding, zkmodel.NodeInit} {
		var left map[string]time.Time
		for _, after := range []time.Duration{0, orphanTime - 1} {
			if list, again := due(state, nil, seen.Add(after), &left); len(list) > 0 || !again.Equal(seen.Add(orphanTime)) {
				t.Errorf("%s, %s after it was seen unlocked: %v, again at %s", state, after, list, again)
			}
		}
		if list, _ := due(state, nil, seen.Add(orphanTime), &left); len(list) != 1 {
			t.Errorf("%s, after the grace period: %v", state, list)
		}
		if list, _ := due(state, zkmodel.Strings{zkmodel.KnowsVerdicts}, seen, new(map[string]time.Time)); len(list) != 1 {
			t.Errorf("%s, of a launcher of Poolkeeper: %v", state, list)
		}
	}
	if list, _ := due(zkmodel.NodeInUse, nil, seen, new(map[string]time.Time)); len(list) != 1 {
		t.Errorf("in use: %v", list)
	}
}
