package reap

import "poolkeeper/zkmodel"

// Duty is what a launcher owes to a record that nobody has locked.
type Duty string

// The duties.
const (
	DutyNone    Duty = "none"    // another's move
	DutyRecover Duty = "recover" // its launcher died before it asked the cloud
	DutySettle  Duty = "settle"  // gives a ready node back when its request is gone
	DutyExpire  Duty = "expire"  // ends a hold whose time is over
	DutyRemove  Duty = "remove"  // deletes a node, in the cloud first
	DutyAdopt   Duty = "adopt"   // goes on with a launch for stock
	DutyAssign  Duty = "assign"  // decides over a request
	DutyReclaim Duty = "reclaim" // takes over a request whose launcher died
)

// Duties says what a launcher owes to records of each state; which state may become
// which is told by zkmodel's transitions. DESIGN.md shows both.
type Duties struct {
	Nodes    map[zkmodel.NodeState]Duty
	Requests map[zkmodel.RequestState]Duty
}

// NewDuties makes the tables; they have a row for every state.
func NewDuties() Duties {
	return Duties{
		Nodes: map[zkmodel.NodeState]Duty{
			zkmodel.NodeInit:     DutyRecover,
			zkmodel.NodeBuilding: DutyRemove,
			zkmodel.NodeTesting:  DutyNone,
			zkmodel.NodeReady:    DutySettle,
			zkmodel.NodeInUse:    DutyRemove,
			zkmodel.NodeUsed:     DutyRemove,
			zkmodel.NodeHold:     DutyExpire,
			zkmodel.NodeFailed:   DutyRemove,
			zkmodel.NodeAborted:  DutyRemove,
			zkmodel.NodeDeleting: DutyRemove,
			zkmodel.NodeDeleted:  DutyRemove,
		},
		Requests: map[zkmodel.RequestState]Duty{
			zkmodel.RequestRequested: DutyAssign,
			zkmodel.RequestPending:   DutyReclaim,
			zkmodel.RequestFulfilled: DutyNone,
			zkmodel.RequestFailed:    DutyNone,
		},
	}
}

// Node is the duty towards an unlocked node. A state that we do not know is
// another's.
func (t Duties) Node(state zkmodel.NodeState) Duty {
	if d, ok := t.Nodes[state]; ok {
		return d
	}
	return DutyNone
}

// Request is the duty towards an unlocked request.
func (t Duties) Request(state zkmodel.RequestState) Duty {
	if d, ok := t.Requests[state]; ok {
		return d
	}
	return DutyNone
}
