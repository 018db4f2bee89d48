package singleton

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
)

func TestQuestionsForLimitsArePaced(t *testing.T) {
	var a asking
	now := time.Now()
	a.note(now, nil)
	if got := a.after(false); got != providers.LimitsAge {
		t.Errorf("nobody waits: %s", got)
	}
	var pauses []time.Duration
	for range 6 {
		pauses = append(pauses, a.after(true))
		now = now.Add(a.after(true))
		a.note(now, nil)
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Error(diff)
	}
	a.note(now.Add(providers.LimitsAge), nil)
	if got := a.after(true); got != 2*time.Second {
		t.Errorf("after a rest: %s", got)
	}
	a.note(now.Add(providers.LimitsAge), errors.New("down"))
	if got := a.after(false); got > 2*time.Second {
		t.Errorf("after a failure: %s", got)
	}
}
