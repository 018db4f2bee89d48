// Package step names the moments at which tests crash a launcher.
package step

// Step is a moment between two changes of the tree or a cloud. A crash there
// must leave nothing that the other launchers, or the next start, do not put
// right.
type Step string

// The steps of a request and of its nodes, in their order.
const (
	Accepted  Step = "request: accepted, node records made"
	Reused    Step = "request: a ready node taken"
	Begun     Step = "node: locked and building"
	Created   Step = "node: machine asked for"
	Noted     Step = "node: machine's id noted"
	Booted    Step = "node: machine runs"
	Ready     Step = "node: record ready"
	Parted    Step = "node: machine that is not deleted has a record of its own"
	Failed    Step = "node: record failed"
	Fulfilled Step = "request: fulfilled"
	Declined  Step = "request: declined"
	Resumed   Step = "request: taken over"

	DeleteLocked Step = "delete node: locked"
	DeleteMarked Step = "delete node: record marked"
	DeleteCloud  Step = "delete node: cloud cleaned"
	Deleted      Step = "delete node: record gone"

	TrialMade    Step = "validation: node record made"
	TrialBegun   Step = "validation: node locked and building"
	TrialCreated Step = "validation: machine asked for"
	TrialNoted   Step = "validation: machine's id noted"
	TrialBooted  Step = "validation: machine runs, checks begin"
	TrialChecked Step = "validation: checks are over"
	TrialTold    Step = "validation: result written"

	BackingNoted Step = "backing node: record made"
	BackingAsked Step = "backing node: request made"
	BackingTaken Step = "backing node: taken over"
	BackingGiven Step = "backing node: given back"

	MinReady Step = "min-ready: request made"
	Evicted  Step = "evict: record marked"
)

// All lists all steps, for tests that crash at each.
func All() []Step {
	return []Step{
		Accepted, Reused, Begun, Created, Noted, Booted, Ready, Parted, Failed,
		Fulfilled, Declined, Resumed,
		DeleteLocked, DeleteMarked, DeleteCloud, Deleted, MinReady, Evicted,
		TrialMade, TrialBegun, TrialCreated, TrialNoted, TrialBooted, TrialChecked, TrialTold,
		BackingNoted, BackingAsked, BackingTaken, BackingGiven,
	}
}
