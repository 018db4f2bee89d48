package schedule

import (
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Decision is what becomes of one request: Accept, Decline, Wait, Yield or Reclaim.
type Decision interface {
	// Of is the request.
	Of() *zkmodel.Request
	// Why is the reason in words, for people. It is never empty, and nothing follows
	// from it.
	Why() string
	// Verdict is the kind of the decision in one word, for logs.
	Verdict() string
}

// About is what every decision has.
type About struct {
	Request *zkmodel.Request
	Reason  string
}

// Of implements Decision.
func (a About) Of() *zkmodel.Request { return a.Request }

// Why implements Decision.
func (a About) Why() string { return a.Reason }

// Accept says that a pool takes the request now.
type Accept struct {
	About
	Pool   *Pool
	Places []Place // one for each of the request's labels, in order
	Zone   string  // the availability zone of all new nodes; "" is any
	// UsesQuota: the lock of the quota must be ours.
	UsesQuota bool
	// Asked is what the launches remember of this decision.
	Asked lesson.Asked
	// Since tells from when on another launcher was to take it first, whose time is
	// over; zero when it is ours to take.
	Since time.Time
}

// Place is one node that a request gets.
type Place struct {
	Label string
	// Node is the id of a ready node to be reused; "" launches a new one.
	Node  string
	Needs providers.Resources // of a new one
}

// Decline says that some of our pools can never serve the request.
type Decline struct {
	About
	Pools []string // their ids; none where all have declined already
	// Reasons are those of each of Pools, by id.
	Reasons map[string]string
	// Imageless are those of Pools that decline as no image is ready there. An image that was
	// ready before the request was made may not be seen yet: carried out is only what a view
	// says that is as new as the request.
	Imageless []string
}

// Wait says that one of our pools, or one that may come back, may serve the request later.
type Wait struct {
	About
	Cause Cause
	// Pool is the one that it waits for; nil when that is none of ours.
	Pool *Pool
	// Queued: it waits for room in the pool.
	Queued bool
	// Evict are idle nodes that stand in its way.
	Evict []string
	// NeedsQuota: the quota of the pool's provider must be locked first.
	NeedsQuota bool
	// Short are the providers that have no room for it now.
	Short []string
	// Since tells from when on it could be accepted that another launcher is to take
	// first; zero when it could not, or is ours to take.
	Since time.Time
	// Again is when the decision may be another although nothing happens; zero is never.
	Again time.Time
}

// Yield says that the request is another launcher's business.
type Yield struct {
	About
	// Since tells from when on it could be accepted that another launcher is to take
	// first; zero when it could not.
	Since time.Time
	// Again is from when on it is ours to take; zero is never.
	Again time.Time
}

// Reclaim says that the launcher of the request died; it begins again.
type Reclaim struct{ About }

// Verdict implements Decision.
func (Accept) Verdict() string { return "accept" }

// Verdict implements Decision.
func (Decline) Verdict() string { return "decline" }

// Verdict implements Decision.
func (Wait) Verdict() string { return "wait" }

// Verdict implements Decision.
func (Yield) Verdict() string { return "yield" }

// Verdict implements Decision.
func (Reclaim) Verdict() string { return "reclaim" }

// Explain lists requests for people to look at: one that waits has as its reason why, in
// the words of the last decisions, unless one of our pools has declined it and so told
// why.
func Explain(requests []*zkmodel.Request, last []Decision, declined func(*zkmodel.Request) bool) []*zkmodel.Request {
	why := map[string]string{}
	for _, d := range last {
		switch d.(type) {
		case Wait, Yield:
			why[d.Of().ID] = d.Why()
		}
	}
	list := make([]*zkmodel.Request, len(requests))
	for i, r := range requests {
		list[i] = r
		if reason := why[r.ID]; reason != "" && r.State == zkmodel.RequestRequested && !declined(r) {
			told := *r
			told.Reason = reason
			list[i] = &told
		}
	}
	return list
}

// Paused are the decisions of a launcher that an operator has paused, and why; "" changes
// nothing. It takes no request and judges none; all are others', or wait.
func Paused(decisions []Decision, why string) []Decision {
	if why == "" {
		return decisions
	}
	waits := make([]Decision, len(decisions))
	for i, d := range decisions {
		waits[i] = Wait{About: About{Request: d.Of(), Reason: "this launcher is paused: " + why}, Cause: Held}
	}
	return waits
}

// Outcome is what follows from the decisions of a round, beside what is done with each
// request.
type Outcome struct {
	// Since tells of requests from when on they could be accepted that another launcher is
	// to take first.
	Since map[string]time.Time
	// Again is when a round may decide otherwise although nothing has happened; zero is never.
	Again time.Time
	// Quotas are the providers whose quota must be locked for a request.
	Quotas map[string]bool
	// Evict are the idle nodes that are to make room.
	Evict []string
}

// Follows is the outcome of decisions over a snapshot.
func Follows(s *Snapshot, decisions []Decision) Outcome {
	out := Outcome{Since: map[string]time.Time{}, Quotas: map[string]bool{}}
	for _, d := range decisions {
		began, due := time.Time{}, time.Time{}
		switch d := d.(type) {
		case Accept:
			began = d.Since
		case Yield:
			began, due = d.Since, d.Again
		case Wait:
			began, due = d.Since, d.Again
			if d.NeedsQuota {
				out.Quotas[d.Pool.Provider] = true
			}
			out.Evict = append(out.Evict, d.Evict...)
		}
		out.Again = Earlier(out.Again, due)
		if !began.IsZero() {
			out.Since[d.Of().ID] = began
		}
	}
	for id, first := range s.Since {
		if s.Busy[id] { // left alone for a moment; its grace goes on
			out.Since[id] = first
		}
	}
	return out
}

// Cause is why a request waits, as one of a few words, for figures; Why says it for people.
type Cause string

// The causes.
const (
	Quota         Cause = "quota"         // a pool or its provider is full
	Refused       Cause = "refused"       // the cloud refused, and is not tried again yet
	Tenant        Cause = "tenant"        // its tenant's limit
	Busy          Cause = "busy"          // max-concurrency, or another launcher has the quota
	Provider      Cause = "provider"      // the provider cannot be used, or owes an answer
	Configuration Cause = "configuration" // a mistake leaves out what would serve it
	Absent        Cause = "absent"        // the launcher that had its labels may come back
	Others        Cause = "others"        // left to other launchers
	Held          Cause = "paused"        // an operator has paused the launcher, or the provider
	Undecided     Cause = "undecided"     // not decided over yet, or tried again after an error
)

// Causes are all of them.
func Causes() []Cause {
	return []Cause{Quota, Refused, Tenant, Busy, Provider, Configuration, Absent, Others, Held, Undecided}
}

// Oldest is for each cause since when the oldest request waits for it; causes for which none
// waits are left out, and so are requests of launchers for their stock: nobody waits for
// those. Decisions are the last ones, registered the pools of all launchers: where all launches
// for a request fail, it waits for its provider.
func Oldest(requests []*zkmodel.Request, last []Decision, registered []*zkmodel.Component) map[Cause]time.Time {
	causes := map[string]Cause{}
	for _, d := range last {
		switch d := d.(type) {
		case Wait:
			causes[d.Request.ID] = d.Cause
		case Yield:
			causes[d.Request.ID] = Others
		}
	}
	oldest := map[Cause]time.Time{}
	for _, r := range requests {
		if r.Broken != nil || r.State != zkmodel.RequestRequested || r.Requestor == MinReadyRequestor {
			continue
		}
		cause := causes[r.ID]
		if cause == "" {
			cause = Undecided
		}
		if (cause == Undecided || cause == Quota) && zkmodel.LaunchesFail(registered, r) != "" {
			cause = Provider
		}
		if first, known := oldest[cause]; !known || r.Stat.Ctime.Before(first) {
			oldest[cause] = r.Stat.Ctime
		}
	}
	return oldest
}
