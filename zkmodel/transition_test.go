package zkmodel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// Mistakes: a row with a state that does not exist, a state without a row, a state
// that nothing leads to, or one that our daemons can never end.
func TestTransitionsAreTotal(t *testing.T) {
	total(t, zkmodel.BuildTransitions(), zkmodel.BuildStates(), zkmodel.BuildBuilding, zkmodel.BuildDeleting)
	total(t, zkmodel.UploadTransitions(), zkmodel.UploadStates(), zkmodel.UploadUploading, zkmodel.UploadDeleting)
	total(t, zkmodel.NodeTransitions(), zkmodel.NodeStates(), zkmodel.NodeInit, zkmodel.NodeDeleted)
	total(t, zkmodel.RequestTransitions(), zkmodel.RequestStates(), zkmodel.RequestRequested, zkmodel.RequestFailed)
}

func total[S ~string](t *testing.T, rows []zkmodel.Transition[S], states []S, first, last S) {
	t.Helper()
	seen := map[zkmodel.Transition[S]]bool{}
	reached := map[S]bool{first: true}
	for _, row := range rows {
		if row.From != "" && !slices.Contains(states, row.From) || !slices.Contains(states, row.To) || row.By == 0 || row.By.String() == "" {
			t.Errorf("row %+v", row)
		}
		key := zkmodel.Transition[S]{From: row.From, To: row.To}
		if seen[key] {
			t.Errorf("two rows from %q to %q", row.From, row.To)
		}
		seen[key] = true
		reached[row.To] = true
	}
	for _, state := range states {
		if state == S(zkmodel.NodeTesting) { // set by nobody today
			continue
		}
		if !reached[state] {
			t.Errorf("nothing leads to %s", state)
		}
		if terminal := state == "fulfilled"; !terminal && !ends(rows, state, last) {
			t.Errorf("%s never ends for our daemons", state)
		}
	}
}

// ends reports whether our daemons alone can lead a state to the last one.
func ends[S ~string](rows []zkmodel.Transition[S], from, last S) bool {
	seen := map[S]bool{from: true}
	for queue := []S{from}; len(queue) > 0; queue = queue[1:] {
		for _, row := range rows {
			if (row.From == queue[0] || row.From == "") && row.By&zkmodel.ByUs != 0 && !seen[row.To] {
				seen[row.To] = true
				queue = append(queue, row.To)
			}
		}
	}
	return seen[last]
}

// Mistakes: a move outside the table that is made, or that is refused and yet changes
// the record; an operator who may do what only a launcher may, or the reverse; a
// refusal that does not say what may be done instead.
func TestMoveHoldsTheTable(t *testing.T) {
	for _, tc := range []struct {
		from, to zkmodel.NodeState
		by       zkmodel.Actor
		moves    bool
	}{
		{zkmodel.NodeUsed, zkmodel.NodeReady, zkmodel.ByUs, false},
		{zkmodel.NodeUsed, zkmodel.NodeDeleting, zkmodel.ByUs, true},
		{zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.ByUs, false},
		{zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.ByRequestor, true},
		{zkmodel.NodeReady, zkmodel.NodeHold, zkmodel.ByOperator, true},
		{zkmodel.NodeDeleting, zkmodel.NodeHold, zkmodel.ByOperator, false},
		{zkmodel.NodeBuilding, zkmodel.NodeHold, zkmodel.ByOperator, false},
		{zkmodel.NodeInit, zkmodel.NodeReady, zkmodel.ByOther, false},
		{"melting", zkmodel.NodeDeleting, zkmodel.ByOperator, true},
		{"melting", zkmodel.NodeDeleting, zkmodel.ByUs, false},
		{"melting", zkmodel.NodeHold, zkmodel.ByOperator, false},
	} {
		n := &zkmodel.Node{ID: "7", State: tc.from, StateTime: 1, CreatedTime: 1}
		err := zkmodel.Move(n, tc.to, tc.by, 2)
		if tc.moves && (err != nil || n.State != tc.to || n.StateTime != 2 || n.CreatedTime != 1) {
			t.Errorf("%s to %s by %s: %v; node is %s since %v", tc.from, tc.to, tc.by, err, n.State, n.StateTime)
		}
		if !tc.moves && (!errors.Is(err, zkmodel.ErrTransition) || n.State != tc.from || n.StateTime != 1) {
			t.Errorf("%s to %s by %s: %v; node is %s since %v", tc.from, tc.to, tc.by, err, n.State, n.StateTime)
		}
	}
	err := zkmodel.Move(&zkmodel.Node{ID: "7", State: zkmodel.NodeDeleting}, zkmodel.NodeHold, zkmodel.ByOperator, 1)
	const want = "move node 7 from deleting to hold by an operator: not a transition; it may become deleted (our daemons or other daemons), deleting (an operator)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("refusal: %v", err)
	}
	r := &zkmodel.Request{ID: "200-1", State: zkmodel.RequestFulfilled}
	if err := zkmodel.Move(r, zkmodel.RequestRequested, zkmodel.ByUs, 2); !errors.Is(err, zkmodel.ErrTransition) {
		t.Errorf("fulfilled to requested: %v", err)
	}
}

// Mistakes: a state's age that begins anew because somebody set it again, or a hold
// that is renewed and ends at its old time.
func TestStayingIsNoMoveUnlessTheTableSaysSo(t *testing.T) {
	for _, tc := range []struct {
		state zkmodel.NodeState
		by    zkmodel.Actor
		since zkmodel.Epoch
	}{
		{zkmodel.NodeHold, zkmodel.ByOperator, 2},
		{zkmodel.NodeHold, zkmodel.ByUs, 1},
		{zkmodel.NodeReady, zkmodel.ByUs, 1},
		{"melting", zkmodel.ByUs, 1},
	} {
		n := &zkmodel.Node{State: tc.state, StateTime: 1}
		if err := zkmodel.Move(n, tc.state, tc.by, 2); err != nil || n.StateTime != tc.since {
			t.Errorf("%s stays by %s: %v, since %v", tc.state, tc.by, err, n.StateTime)
		}
	}
	r := &zkmodel.Request{State: zkmodel.RequestRequested, StateTime: 1}
	if err := zkmodel.Move(r, zkmodel.RequestRequested, zkmodel.ByUs, 2); err != nil || r.StateTime != 2 {
		t.Errorf("declined: %v, since %v", err, r.StateTime)
	}
}
