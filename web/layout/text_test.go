package layout

import (
	"math"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// Records may hold any number.
func TestSeconds(t *testing.T) {
	for in, want := range map[float64]time.Duration{
		1.5: 1500 * time.Millisecond, -1: 0, math.Inf(1): 365 * 24 * time.Hour, 1e300: 365 * 24 * time.Hour,
	} {
		if got := Seconds(in); got != want {
			t.Errorf("Seconds(%g) = %s, want %s", in, got, want)
		}
	}
}

// Every state that the tree knows has a colour; one that it does not know is
// shown as it is.
func TestStatesHaveKinds(t *testing.T) {
	states := []string{
		string(zkmodel.BuildBuilding), string(zkmodel.BuildReady), string(zkmodel.BuildFailed), string(zkmodel.BuildDeleting),
		string(zkmodel.UploadUploading), string(zkmodel.RequestRequested), string(zkmodel.RequestPending), string(zkmodel.RequestFulfilled),
		string(zkmodel.NodeInit), string(zkmodel.NodeTesting), string(zkmodel.NodeInUse), string(zkmodel.NodeUsed),
		string(zkmodel.NodeHold), string(zkmodel.NodeAborted), string(zkmodel.NodeDeleted),
		zkmodel.ComponentInitializing, zkmodel.ComponentRunning, zkmodel.ComponentPaused, zkmodel.ComponentStopped,
	}
	for _, state := range states {
		if got := StateBadge(state, nil); got.Kind == "" || got.Text != state {
			t.Errorf("state %s: %+v, want a kind", state, got)
		}
	}
	if got, want := StateBadge("novel", nil), (Badge{Text: "novel"}); got != want {
		t.Errorf("a state that we do not know: %+v, want %+v", got, want)
	}
}
