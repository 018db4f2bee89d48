package reap

import (
	"testing"

	"poolkeeper/zkmodel"
)

// Mistake: a state without a duty is left alone for ever, or one that docs/wire.md
// protects is deleted once nobody has its lock.
func TestEveryStateHasItsDuty(t *testing.T) {
	duties := NewDuties()
	for _, state := range zkmodel.NodeStates() {
		d, ok := duties.Nodes[state]
		if removes := d == DutyRemove; !ok || removes != state.Deletable() {
			t.Errorf("%s: removed when unlocked: %v; docs/wire.md: %v", state, removes, state.Deletable())
		}
	}
	moves := map[zkmodel.RequestState]bool{}
	for _, row := range zkmodel.RequestTransitions() {
		moves[row.From] = true
	}
	for _, state := range zkmodel.RequestStates() {
		if d, ok := duties.Requests[state]; !ok || d == DutyNone == moves[state] {
			t.Errorf("%s: duty %s, and it moves on: %v", state, d, moves[state])
		}
	}
	if d := duties.Node("melting"); d != DutyNone {
		t.Errorf("a state that we do not know is ours to %s", d)
	}
	if d := duties.Request("melting"); d != DutyNone {
		t.Errorf("a request state that we do not know is ours to %s", d)
	}
}
