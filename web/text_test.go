package web

import (
	"math"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                          "0s",
		59*time.Second + 999*time.Millisecond: "59s",
		9*time.Minute + 59*time.Second:        "9m 59s",
		10*time.Minute + time.Second:          "10m",
		time.Hour:                             "1h 0m",
		23*time.Hour + 59*time.Minute:         "23h 59m",
		24*time.Hour + 30*time.Minute:         "1d 0h",
		100 * 24 * time.Hour:                  "100d 0h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

// Records may hold any number.
func TestSeconds(t *testing.T) {
	for in, want := range map[float64]time.Duration{
		1.5: 1500 * time.Millisecond, -1: 0, math.Inf(1): 365 * 24 * time.Hour, 1e300: 365 * 24 * time.Hour,
	} {
		if got := seconds(in); got != want {
			t.Errorf("seconds(%g) = %s, want %s", in, got, want)
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
		if got := stateBadge(state, nil); got.Kind == "" || got.Text != state {
			t.Errorf("state %s: %+v, want a kind", state, got)
		}
	}
	if got, want := stateBadge("novel", nil), (badge{Text: "novel"}); got != want {
		t.Errorf("a state that we do not know: %+v, want %+v", got, want)
	}
}

// What failed is tried again some time; what is due waits for a worker, and
// has no time.
func TestNextTry(t *testing.T) {
	now := time.Unix(1795161300, 0)
	for at, want := range map[zkmodel.Epoch]string{
		0: "", 1795161299: "", 1795161300: "", 1795161390.5: "next try in 1m 30s",
	} {
		if got := nextTry(at, now); got != want {
			t.Errorf("next try at %f: %q, want %q", at, got, want)
		}
	}
}
