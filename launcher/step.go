package launcher

// Step is a moment between two changes of the tree or a cloud. A crash there
// must leave nothing that the other launchers, or the next start, do not put
// right.
type Step string

// The steps of a request and of its nodes, in their order.
const (
	StepAccepted  Step = "request: accepted, node records made"
	StepReused    Step = "request: a ready node taken"
	StepBegun     Step = "node: locked and building"
	StepCreated   Step = "node: machine asked for"
	StepNoted     Step = "node: machine's id noted"
	StepBooted    Step = "node: machine runs"
	StepReady     Step = "node: record ready"
	StepFailed    Step = "node: record failed"
	StepFulfilled Step = "request: fulfilled"
	StepDeclined  Step = "request: declined"
	StepResumed   Step = "request: taken over"

	StepDeleteLocked Step = "delete node: locked"
	StepDeleteMarked Step = "delete node: record marked"
	StepDeleteCloud  Step = "delete node: cloud cleaned"
	StepDeleted      Step = "delete node: record gone"

	StepMinReady Step = "min-ready: request made"
	StepEvicted  Step = "evict: record marked"
)

// Steps lists all steps, for tests that crash at each.
func Steps() []Step {
	return []Step{
		StepAccepted, StepReused, StepBegun, StepCreated, StepNoted, StepBooted, StepReady, StepFailed,
		StepFulfilled, StepDeclined, StepResumed,
		StepDeleteLocked, StepDeleteMarked, StepDeleteCloud, StepDeleted, StepMinReady, StepEvicted,
	}
}

// step tells whoever wants to know where we are.
func (l *Launcher) step(at Step) {
	if l.deps.Step != nil {
		l.deps.Step(at)
	}
}
