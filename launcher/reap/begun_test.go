package reap

import (
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
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
