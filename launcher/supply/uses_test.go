package supply_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Only clouds whose room is not known are counted; a cloud that tells its limits must not
// learn from what it holds, and one that refused is not asked before its pause is over.
func TestUsesOfCloudsWhoseRoomIsNotKnown(t *testing.T) {
	now := time.Now()
	clouds := map[string]*supply.Provider{}
	add := func(name string, pools ...configs.Pool) *supply.Provider {
		clouds[name] = supply.New(configs.Provider{Name: name, Pools: pools}, nil, hclog.NewNullLogger(), func() time.Time { return now }, func() {})
		return clouds[name]
	}
	add("tells", configs.Pool{})
	ignored := add("ignored", configs.Pool{}, configs.Pool{IgnoreProviderQuota: true})
	refused := lesson.Lesson{Number: 1, Round: 1, Failures: 1}
	add("refused", configs.Pool{}).Heed(refused)
	add("leaving").Heed(refused) // has no pools any more
	nodes := []*zkmodel.Node{
		{ID: "1", Provider: "tells", State: zkmodel.NodeReady},
		{ID: "2", Provider: "ignored", State: zkmodel.NodeReady},
		{ID: "3", Provider: "ignored", State: zkmodel.NodeInUse},
		{ID: "4", Provider: "refused", State: zkmodel.NodeReady},
		{ID: "5", Provider: "leaving", State: zkmodel.NodeReady},
	}
	uses, again := supply.Uses(clouds, nodes, now, false)
	if len(uses) != 2 || uses["ignored"].Held[providers.Instances] != 2 || uses["refused"].Held[providers.Instances] != 1 {
		t.Errorf("uses: %v", uses)
	}
	if got := ignored.Lessons().Lesson.Holds[providers.Instances]; got != 2 {
		t.Errorf("the cloud is known to hold %d, want 2", got)
	}
	if pause := again.Sub(now); pause < refused.Pause() || pause > refused.Pause()*11/10 {
		t.Errorf("tried again after %s, want %s", pause, refused.Pause())
	}
}
