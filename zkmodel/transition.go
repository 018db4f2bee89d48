package zkmodel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrTransition says that the table of states has no such transition; a mistake of the
	// caller, or a record that another process changed meanwhile.
	ErrTransition = errors.New("not a transition")
	// ErrConflict says that another process was faster, or the record has changed; read it again.
	ErrConflict = errors.New("taken by another")
)

// Actor is who changes the state of a record. Rows of tables join several.
type Actor uint8

// Who there is.
const (
	ByUs        Actor = 1 << iota // a builder or launcher of ours
	ByRequestor                   // Zuul, or our request command, which does as Zuul does
	ByOperator                    // a command, or the page
	ByOther                       // a builder or launcher of another make: Nodepool's
)

// String names the actors, for messages.
func (a Actor) String() string {
	var names []string
	for _, one := range []struct {
		actor Actor
		name  string
	}{
		{ByUs, "our daemons"}, {ByRequestor, "a requestor"}, {ByOperator, "an operator"}, {ByOther, "other daemons"},
	} {
		if a&one.actor != 0 {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, " or ")
}

// anyState stands in a row for all states, those included that we do not know.
const anyState = ""

// Transition is one row of a table: From may become To, by whom.
type Transition[S ~string] struct {
	From S // "" is any state, known or not
	To   S
	By   Actor
}

// transitions is the table of one kind of record.
type transitions[S ~string] struct {
	first S // in which our records begin
	rows  []Transition[S]
}

// allows reports whether a state may become another, by an actor.
func (t transitions[S]) allows(from, to S, by Actor) bool {
	return slices.ContainsFunc(t.rows, func(row Transition[S]) bool {
		return (row.From == from || row.From == anyState) && row.To == to && row.By&by != 0
	})
}

// ways says what may become of a state, and by whom.
func (t transitions[S]) ways(from S) string {
	var ways []string
	for _, row := range t.rows {
		if row.From == from || row.From == anyState {
			ways = append(ways, fmt.Sprintf("%s (%s)", row.To, row.By))
		}
	}
	if len(ways) == 0 {
		return "it stays as it is"
	}
	return "it may become " + strings.Join(ways, ", ")
}

// Stateful is a record with a state of type S: *Build, *Upload, *Node or *Request.
type Stateful[S ~string] interface {
	called() string
	table() transitions[S]
	state() S
	setState(state S, by Actor, now Epoch)
}

// Move changes the state of a record in memory, and notes when; saving it is the
// caller's. It is the only way to change a state. Staying in a state changes
// nothing, unless the table has a row for that: then its time begins again.
//
// Errors: ErrTransition when the table has no such row; the record is as it was.
func Move[S ~string](r Stateful[S], to S, by Actor, now Epoch) error {
	from, table := r.state(), r.table()
	switch {
	case table.allows(from, to, by):
		r.setState(to, by, now)
	case from != to:
		return fmt.Errorf("move %s from %s to %s by %s: %w; %s", r.called(), from, to, by, ErrTransition, table.ways(from))
	}
	return nil
}

// begin gives a new record its first state.
func begin[S ~string](r Stateful[S], now Epoch) { r.setState(r.table().first, ByUs, now) }

func (b *Build) table() transitions[BuildState]     { return buildTable }
func (u *Upload) table() transitions[UploadState]   { return uploadTable }
func (n *Node) table() transitions[NodeState]       { return nodeTable }
func (r *Request) table() transitions[RequestState] { return requestTable }

func (b *Build) called() string   { return "build " + b.Name() }
func (u *Upload) called() string  { return "upload " + u.Path() }
func (n *Node) called() string    { return "node " + n.ID }
func (r *Request) called() string { return "request " + r.ID }

func (b *Build) state() BuildState     { return b.State }
func (u *Upload) state() UploadState   { return u.State }
func (n *Node) state() NodeState       { return n.State }
func (r *Request) state() RequestState { return r.State }

func (b *Build) setState(state BuildState, by Actor, now Epoch) {
	b.State, b.StateTime, b.by = state, now, by
}

func (u *Upload) setState(state UploadState, by Actor, now Epoch) {
	u.State, u.StateTime, u.by = state, now, by
}

func (r *Request) setState(state RequestState, by Actor, now Epoch) {
	r.State, r.StateTime, r.by = state, now, by
}

func (n *Node) setState(state NodeState, by Actor, now Epoch) {
	n.State, n.StateTime, n.by = state, now, by
	if n.CreatedTime == 0 {
		n.CreatedTime = now
	}
}
