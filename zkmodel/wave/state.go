package wave

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// State is that of a wave or of a job of it.
type State string

// The states. Reporting is a wave's alone: a job has nobody to tell but its wave, which
// learns of its end in the transaction that is its end.
const (
	Pending    State = "pending"    // has not begun
	Held       State = "held"       // has not begun, and must not
	Processing State = "processing" // a build is asked for, under way, or being uploaded
	Reporting  State = "reporting"  // all jobs are over, the end is known, and is being told
	Completed  State = "completed"
	Failed     State = "failed"
	Cancelled  State = "cancelled"
)

// States are all that there are, in their order.
func States() []State {
	return []State{Pending, Held, Processing, Reporting, Completed, Failed, Cancelled}
}

// Over reports whether nothing more is done.
func (s State) Over() bool { return s == Completed || s == Failed || s == Cancelled }

// Transition is one row of a table: From may become To.
type Transition struct{ From, To State }

// waveTable has the transitions of waves.
var waveTable = []Transition{
	{Pending, Held},
	{Held, Pending},
	{Pending, Processing},
	{Processing, Reporting},
	{Reporting, Completed},
	{Reporting, Failed},
	{Reporting, Cancelled},
	{Completed, Processing}, // wave retry
	{Failed, Processing},
	{Cancelled, Processing},
}

// jobTable has the transitions of jobs.
var jobTable = []Transition{
	{Pending, Held},
	{Held, Pending},
	{Pending, Processing},
	{Held, Processing},    // another's build of the image began meanwhile
	{Processing, Pending}, // put back
	{Processing, Completed},
	{Processing, Failed},
	{Processing, Cancelled},
	{Pending, Cancelled},
	{Held, Cancelled},
	{Failed, Pending}, // wave retry
	{Cancelled, Pending},
}

// Transitions is the table of waves.
func Transitions() []Transition { return slices.Clone(waveTable) }

// JobTransitions is the table of jobs.
func JobTransitions() []Transition { return slices.Clone(jobTable) }

// Stateful is a *Status of a wave or a *Progress of a job.
type Stateful interface {
	table() []Transition
	state() *State
	since() *time.Time
}

func (s *Status) table() []Transition   { return waveTable }
func (s *Status) state() *State         { return &s.State }
func (s *Status) since() *time.Time     { return &s.StateTime }
func (p *Progress) table() []Transition { return jobTable }
func (p *Progress) state() *State       { return &p.State }
func (p *Progress) since() *time.Time   { return &p.StateTime }

// Move changes a state in memory, and notes when; saving it is the caller's. It is the
// only way to change a state. Staying in a state changes nothing.
//
// Errors: zkmodel.ErrTransition when the table has no such row; nothing is changed then.
func Move(r Stateful, to State, now time.Time) error {
	from := *r.state()
	switch {
	case from == to:
		return nil
	case !slices.Contains(r.table(), Transition{from, to}):
		return fmt.Errorf("move from %s to %s: %w", from, to, zkmodel.ErrTransition)
	}
	if p, is := r.(*Progress); is && (to == Processing || to == Completed) {
		p.Last = from
	}
	*r.state(), *r.since() = to, now
	return nil
}

// Known reports whether there is such a state.
func (s State) Known() bool { return slices.Contains(States(), s) }
