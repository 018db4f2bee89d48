package launcher

import (
	"fmt"
	"slices"

	"poolkeeper/zkmodel"
)

// duty is what a launcher owes to a record that nobody has locked.
type duty string

const (
	dutyNone    duty = "none"    // somebody else's move
	dutyRecover duty = "recover" // its launcher died before it asked the cloud
	dutySettle  duty = "settle"  // gives a ready node back when its request is gone
	dutyExpire  duty = "expire"  // ends a hold whose time is over
	dutyRemove  duty = "remove"  // deletes a node, in the cloud first
	dutyAssign  duty = "assign"  // decides over a request
	dutyReclaim duty = "reclaim" // takes over a request whose launcher died
)

// nodeRow is what may become of a node in one state.
type nodeRow struct {
	unlocked duty                // when nobody holds its lock
	ours     []zkmodel.NodeState // where a launcher moves it
	theirs   []zkmodel.NodeState // where a requestor or an operator moves it
}

// nodeTable has a row for every state of a node (wire document §4.3). DESIGN.md
// draws it. After deleted there is no record.
func nodeTable() map[zkmodel.NodeState]nodeRow {
	const (
		building = zkmodel.NodeBuilding
		ready    = zkmodel.NodeReady
		inUse    = zkmodel.NodeInUse
		used     = zkmodel.NodeUsed
		hold     = zkmodel.NodeHold
		failed   = zkmodel.NodeFailed
		aborted  = zkmodel.NodeAborted
		deleting = zkmodel.NodeDeleting
		deleted  = zkmodel.NodeDeleted
	)
	type states = []zkmodel.NodeState
	return map[zkmodel.NodeState]nodeRow{
		zkmodel.NodeInit:    {dutyRecover, states{building, deleting}, states{deleting}},
		building:            {dutyRemove, states{ready, failed, aborted, deleting}, states{deleting}},
		zkmodel.NodeTesting: {dutyNone, nil, states{deleting}},
		ready:               {dutySettle, states{deleting}, states{inUse, used, hold, deleting}},
		inUse:               {dutyRemove, states{deleting}, states{used, hold, deleting}},
		used:                {dutyRemove, states{deleting}, states{hold, deleting}},
		hold:                {dutyExpire, states{deleting}, states{used, deleting}},
		failed:              {dutyRemove, states{deleting}, states{deleting}},
		aborted:             {dutyRemove, states{deleting}, states{deleting}},
		deleting:            {dutyRemove, states{deleted}, nil},
		deleted:             {dutyRemove, nil, nil},
	}
}

// requestRow is what may become of a request in one state.
type requestRow struct {
	unlocked duty
	ours     []zkmodel.RequestState
}

// requestTable has a row for every state of a request (wire document §4.4). A
// requestor never moves a request: it deletes it.
func requestTable() map[zkmodel.RequestState]requestRow {
	const (
		requested = zkmodel.RequestRequested
		pending   = zkmodel.RequestPending
		fulfilled = zkmodel.RequestFulfilled
		failed    = zkmodel.RequestFailed
	)
	type states = []zkmodel.RequestState
	return map[zkmodel.RequestState]requestRow{
		requested: {dutyAssign, states{pending, requested, failed}},
		pending:   {dutyReclaim, states{fulfilled, requested, failed}},
		fulfilled: {dutyNone, nil},
		failed:    {dutyNone, nil},
	}
}

// table is both tables, made once.
type table struct {
	nodes    map[zkmodel.NodeState]nodeRow
	requests map[zkmodel.RequestState]requestRow
}

func newTable() table { return table{nodes: nodeTable(), requests: requestTable()} }

// node is the duty towards an unlocked node. A state that we do not know is
// somebody else's.
func (t table) node(state zkmodel.NodeState) duty {
	if row, ok := t.nodes[state]; ok {
		return row.unlocked
	}
	return dutyNone
}

// request is the duty towards an unlocked request.
func (t table) request(state zkmodel.RequestState) duty {
	if row, ok := t.requests[state]; ok {
		return row.unlocked
	}
	return dutyNone
}

// moveNode sets a node's state, or fails with ErrMove where the table has no
// such way. Staying in a state is no move and keeps its time.
func (t table) moveNode(n *zkmodel.Node, to zkmodel.NodeState, now zkmodel.Epoch) error {
	if n.State == to {
		return nil
	}
	if !slices.Contains(t.nodes[n.State].ours, to) {
		return fmt.Errorf("move node %s from %s to %s: %w", n.ID, n.State, to, ErrMove)
	}
	n.SetState(to, now)
	return nil
}

// moveRequest sets a request's state, or fails with ErrMove.
func (t table) moveRequest(r *zkmodel.Request, to zkmodel.RequestState, now zkmodel.Epoch) error {
	if !slices.Contains(t.requests[r.State].ours, to) {
		return fmt.Errorf("move request %s from %s to %s: %w", r.ID, r.State, to, ErrMove)
	}
	r.SetState(to, now)
	return nil
}
