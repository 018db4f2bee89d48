package reap

import (
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Ages count on ZooKeeper's clock: a record whose writer was years ahead grows old all
// the same, and a host whose own clock is wrong deletes nothing by age.
func TestAgesOnWrongClocks(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	old := func(state zkmodel.NodeState, written, told time.Duration) *zkmodel.Node {
		n := aNode(state)
		n.StateTime, n.Stat = zkmodel.EpochOf(now.Add(told)), recipe.Stat{Mtime: now.Add(written)}
		return n
	}
	const years = 10 * 365 * 24 * time.Hour
	for name, tc := range map[string]struct {
		node *zkmodel.Node
		lag  time.Duration
		due  bool
	}{
		"ready for long":                 {old(zkmodel.NodeReady, -2*time.Hour, -2*time.Hour), 0, true},
		"ready since a moment":           {old(zkmodel.NodeReady, -time.Second, -time.Second), 0, false},
		"ready since ten years ahead":    {old(zkmodel.NodeReady, -2*time.Hour, years), 0, true},
		"held since ten years ahead":     {old(zkmodel.NodeHold, -2*time.Hour, years), 0, true},
		"ready, and says no time":        {old(zkmodel.NodeReady, -time.Second, -2_000_000_000*time.Second), 0, false},
		"held, and says no time":         {old(zkmodel.NodeHold, -time.Second, -2_000_000_000*time.Second), 0, false},
		"our clock is a little early":    {old(zkmodel.NodeReady, -time.Hour-20*time.Second, -time.Hour-20*time.Second), -30 * time.Second, false},
		"our clock is a little late":     {old(zkmodel.NodeReady, -time.Hour+20*time.Second, -time.Hour+20*time.Second), 30 * time.Second, true},
		"our clock is wrong, early":      {old(zkmodel.NodeReady, -2*time.Hour, -2*time.Hour), -2 * time.Minute, false},
		"our clock is wrong, and a hold": {old(zkmodel.NodeHold, -2*time.Hour, -2*time.Hour), 2 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Rules{
				Ages: Ages{Hold: time.Hour, Ready: map[string]time.Duration{"a": time.Hour}}, Served: map[string]bool{"cloud": true}, Lag: tc.lag,
			}
			list, _ := Due(&schedule.Snapshot{Now: now, Nodes: []*zkmodel.Node{tc.node}}, NewDuties(), func(string) bool { return false }, r)
			if (len(list) == 1) != tc.due {
				t.Errorf("%d nodes are due, want due: %v", len(list), tc.due)
			}
		})
	}
}
