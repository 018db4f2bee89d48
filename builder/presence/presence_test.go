package presence

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
)

// The record says what is true: a builder that has a session and builds nothing is
// paused, one that has none is not, and a provider's trouble is told until it is over.
// Catches: a withdrawn builder that others take for one that builds, and a reason that
// stays when all is well.
func TestSelf(t *testing.T) {
	s := NewSelf(nil, "host", "1", nil, nil, zkmodel.BuilderWork{})
	is := func(state, reason string, troubles map[string]string) {
		t.Helper()
		got := zkmodel.DecodeComponent("host0000000001", s.data())
		if got.State != state || got.Reason != reason {
			t.Errorf("it is %s, %q; want %s, %q", got.State, got.Reason, state, reason)
		}
		if diff := cmp.Diff(troubles, got.Troubles); diff != "" {
			t.Errorf("troubles (-want +got):\n%s", diff)
		}
	}
	is(zkmodel.ComponentInitializing, "", nil)
	s.Withdraw("no room")
	is(zkmodel.ComponentInitializing, "no room", nil)
	s.Set(zkmodel.ComponentRunning)
	is(zkmodel.ComponentPaused, "no room", nil)
	s.Withdraw("")
	is(zkmodel.ComponentRunning, "", nil)
	for _, provider := range []string{"north", "south", "gone"} {
		s.Trouble(provider, errors.New("connection refused"))
	}
	s.Trouble("south", nil)
	if diff := cmp.Diff([]string{"north"}, s.OnlyOf([]string{"north", "south"})); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	is(zkmodel.ComponentRunning, "", map[string]string{"north": "connection refused"})
	s.Trouble("north", nil)
	is(zkmodel.ComponentRunning, "", nil)
}

// When a builder was seen last stays known after it has left, and what is handed out is
// not changed later. Of one that was never seen it is known since when we look. Catches:
// a builder that restarts and takes all others for long gone, so that it builds again what
// only they have.
func TestPeers(t *testing.T) {
	p, start := NewPeers(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	first, since := p.Update(map[string]bool{"a": true, "b": true}, start)
	later, again := p.Update(map[string]bool{"b": true}, start.Add(time.Hour))
	if !since.Equal(start) || !again.Equal(start) {
		t.Errorf("since %s and %s, want %s", since, again, start)
	}
	if diff := cmp.Diff(map[string]time.Time{"a": start, "b": start}, first); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"a": start, "b": start.Add(time.Hour)}, later); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}
