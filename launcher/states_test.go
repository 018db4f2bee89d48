package launcher

import (
	"errors"
	"testing"

	"poolkeeper/zkmodel"
)

// nodeStates are those of the wire document §4.3.
var nodeStates = []zkmodel.NodeState{
	"building", "testing", "ready", "in-use", "used", "hold", "deleting", "failed", "init", "aborted", "deleted",
}

func TestNodeTableIsTotal(t *testing.T) {
	table := newTable()
	if len(table.nodes) != len(nodeStates) {
		t.Errorf("%d rows for %d states", len(table.nodes), len(nodeStates))
	}
	reached := map[zkmodel.NodeState]bool{zkmodel.NodeInit: true, zkmodel.NodeTesting: true}
	for _, state := range nodeStates {
		row, ok := table.nodes[state]
		if !ok {
			t.Errorf("%s has no row", state)
		}
		for _, to := range append(row.ours, row.theirs...) {
			reached[to] = true
			if !to.Known() || to == state {
				t.Errorf("%s leads to %q", state, to)
			}
		}
		if removes := row.unlocked == dutyRemove; removes != state.Deletable() {
			t.Errorf("%s: removed when unlocked: %v; the wire document: %v", state, removes, state.Deletable())
		}
	}
	for _, state := range nodeStates {
		if !reached[state] {
			t.Errorf("nothing leads to %s", state)
		}
	}
}

// From every state, whatever launchers alone do ends with the record gone.
func TestEveryNodeStateLeadsToDeleted(t *testing.T) {
	table := newTable()
	for _, from := range nodeStates {
		if from == zkmodel.NodeTesting {
			continue // set by nobody
		}
		seen := map[zkmodel.NodeState]bool{from: true}
		for queue := []zkmodel.NodeState{from}; len(queue) > 0; queue = queue[1:] {
			for _, to := range table.nodes[queue[0]].ours {
				if !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
		if !seen[zkmodel.NodeDeleted] {
			t.Errorf("%s never ends", from)
		}
	}
}

func TestRequestTableIsTotal(t *testing.T) {
	table := newTable()
	states := []zkmodel.RequestState{"requested", "pending", "fulfilled", "failed"}
	if len(table.requests) != len(states) {
		t.Errorf("%d rows for %d states", len(table.requests), len(states))
	}
	for _, state := range states {
		row, ok := table.requests[state]
		if !ok {
			t.Errorf("%s has no row", state)
		}
		for _, to := range row.ours {
			if !to.Known() {
				t.Errorf("%s leads to %q", state, to)
			}
		}
		if done := row.unlocked == dutyNone; done != (len(row.ours) == 0) {
			t.Errorf("%s: duty %s with %d ways on", state, row.unlocked, len(row.ours))
		}
	}
}

func TestMovesOutsideTheTableAreRefused(t *testing.T) {
	table := newTable()
	n := &zkmodel.Node{State: zkmodel.NodeUsed, StateTime: 1}
	if err := table.moveNode(n, zkmodel.NodeReady, 2); !errors.Is(err, ErrMove) || n.State != zkmodel.NodeUsed || n.StateTime != 1 {
		t.Errorf("used to ready: %v, node is %s since %v", err, n.State, n.StateTime)
	}
	if err := table.moveNode(n, zkmodel.NodeDeleting, 2); err != nil || n.State != zkmodel.NodeDeleting || n.StateTime != 2 {
		t.Errorf("used to deleting: %v, node is %s since %v", err, n.State, n.StateTime)
	}
	r := &zkmodel.Request{State: zkmodel.RequestFulfilled}
	if err := table.moveRequest(r, zkmodel.RequestRequested, 2); !errors.Is(err, ErrMove) {
		t.Errorf("fulfilled to requested: %v", err)
	}
	if d := table.node("melting"); d != dutyNone {
		t.Errorf("a state that we do not know is ours to %s", d)
	}
	if d := table.request("melting"); d != dutyNone {
		t.Errorf("a request state that we do not know is ours to %s", d)
	}
}
