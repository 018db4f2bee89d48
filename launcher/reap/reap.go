package reap

import (
	"slices"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

const (
	// lossTime is how long a node that should be locked may look unlocked: the
	// mirror sees record and lock one after the other.
	lossTime = 500 * time.Millisecond
	// orphanTime is how old a record must be that says nothing of its maker, and how long a node in launch that is
	// unlocked is left to Nodepool's launcher.
	orphanTime = time.Minute
)

// Reaping is what is to be done with one unlocked node.
type Reaping struct {
	Node *zkmodel.Node
	Duty Duty
	Why  string
	Lag  time.Duration // of Rules, by which that was decided
}

// Rules are what one launcher reaps by.
type Rules struct {
	Ages
	// Served holds the providers whose nodes are ours to look after: those that are
	// open, also without a pool.
	Served map[string]bool
	// Disabled holds our pools that are: nobody is given their ready nodes any more.
	Disabled map[schedule.PoolKey]bool
	// Stocked are the labels of our pools that are kept in stock.
	Stocked map[schedule.PoolKey][]string
	// Frozen holds the nodes that are not judged by the configuration.
	Frozen map[string]bool
	// Judged says of idle nodes whose build was rolled back or rejected what was said of it.
	Judged map[string]string
	// Interrupted says of idle nodes whose machines the cloud has taken back why.
	Interrupted map[string]string
	// Drained says of providers whose idle nodes are to go who wants that, and why.
	Drained map[string]string
	// LeftUntil is until when nodes in launch are left to Nodepool's launchers (LeftToNodepool).
	LeftUntil map[string]time.Time
	// Lag is how far our clock is behind ZooKeeper's, negative when it is early: the
	// times in its stats are its own, those in records and timers are ours.
	Lag time.Duration
}

// adrift reports whether our clock is so wrong that nothing is deleted by age.
func (r Rules) adrift() bool { return r.Lag.Abs() > MostDrift }

// since is from when on a node has been in its state, by our clock. Whose clock was
// early when it wrote that is not believed: it was no later than the write.
func (r Rules) since(n *zkmodel.Node) time.Time {
	return n.Since().Add(-r.Lag)
}

// Useless says why a ready node cannot be given to anybody; "" when it can.
func (r Rules) Useless(n *zkmodel.Node) string {
	if why := r.Interrupted[n.ID]; why != "" {
		return why
	}
	if why := r.Judged[n.ID]; why != "" {
		return "its build was " + why
	}
	if why := r.Drained[n.Provider]; why != "" && n.Launcher != schedule.StaticLauncher {
		return why
	}
	if r.Disabled[schedule.PoolKey{Provider: n.Provider, Pool: n.Pool}] && n.Launcher != schedule.StaticLauncher && !r.Frozen[n.ID] {
		return "its pool is disabled"
	}
	return ""
}

// MostDrift is how wrong a host's clock may be for it to delete anything by age.
const MostDrift = time.Minute

// goesOn reports whether an unlocked node was in launch for stock that we still keep,
// so that its launch is to be brought to an end.
func (r Rules) goesOn(n *zkmodel.Node) bool {
	return InLaunch(n) && n.Requestor == schedule.MinReadyRequestor && n.AllocatedTo != "" &&
		slices.ContainsFunc(n.Type, func(label string) bool {
			return slices.Contains(r.Stocked[schedule.PoolKey{Provider: n.Provider, Pool: n.Pool}], label)
		})
}

// Ages are how old nodes may become; 0 is any age.
type Ages struct {
	Hold  time.Duration
	Ready map[string]time.Duration // nobody's, by label
}

// Due finds the nodes that something is to be done with now, and when to look
// again. It has no side effects.
func Due(s *schedule.Snapshot, t Duties, mine func(id string) bool, rules Rules) ([]Reaping, time.Time) {
	requests := make(map[string]zkmodel.RequestState, len(s.Requests))
	for _, r := range s.Requests {
		requests[r.ID] = r.State
	}
	launchers := map[string]bool{}
	for _, c := range s.Registered {
		launchers[c.ID] = true
	}
	var list []Reaping
	var again time.Time
	for _, n := range s.Nodes {
		if n.Locked || mine(n.ID) || n.Broken == nil && !rules.Served[n.Provider] && !NoProvider(n) {
			continue
		}
		d, why, due := nodeReaping(n, t, requests, launchers, rules)
		switch {
		case d == DutyNone:
		case due.After(s.Now):
			again = schedule.Earlier(again, due)
		default:
			list = append(list, Reaping{n, d, why, rules.Lag})
		}
	}
	return list, again
}

// LeftToNodepool returns until when unlocked nodes in launch are left to the registered launchers of Nodepool that
// launch them: such a launcher unlocks a node whose launch has failed, and deletes it some seconds later. before is the result
// of the last call.
func LeftToNodepool(s *schedule.Snapshot, before map[string]time.Time) map[string]time.Time {
	launchers := map[string]bool{}
	for _, c := range s.Registered {
		if c.OfNodepool() {
			launchers[c.ID] = true
		}
	}
	if len(launchers) == 0 {
		return nil
	}
	left := map[string]time.Time{}
	for _, n := range s.Nodes {
		if n.Broken != nil || n.Locked || !InLaunch(n) || !launchers[n.Launcher] {
			continue
		}
		left[n.ID] = before[n.ID]
		if left[n.ID].IsZero() {
			left[n.ID] = s.Now.Add(orphanTime)
		}
	}
	return left
}

// NoProvider reports whether a node that is to be deleted names no provider: an operator
// deleted one of which nothing was known.
func NoProvider(n *zkmodel.Node) bool {
	return n.Broken == nil && n.Provider == "" && n.State == zkmodel.NodeDeleting
}

// nodeReaping is what one unlocked node needs, why, and from when on.
func nodeReaping(n *zkmodel.Node, t Duties, requests map[string]zkmodel.RequestState, launchers map[string]bool, rules Rules) (Duty, string, time.Time) {
	changed := n.Stat.Mtime.Add(-rules.Lag)
	lost := changed.Add(lossTime)
	if until := rules.LeftUntil[n.ID]; until.After(lost) {
		lost = until
	}
	if n.Unknown() {
		return DutyNone, "", time.Time{}
	}
	if n.Broken != nil { // a lock was tried on a node that was gone
		return DutyRemove, "its record is empty", changed.Add(orphanTime)
	}
	switch d := t.Node(n.State); d {
	case DutyRecover, DutyRemove:
		if InLaunch(n) && requests[n.AllocatedTo] == zkmodel.RequestPending {
			return DutyNone, "", time.Time{} // the launcher that takes the request over goes on with it
		}
		if _, there := requests[n.AllocatedTo]; !there && rules.goesOn(n) {
			return DutyAdopt, "its request for stock is gone", lost
		}
	default:
	}
	switch d := t.Node(n.State); d {
	case DutyRecover:
		if _, there := requests[n.AllocatedTo]; !there {
			return d, "its request is gone", lost
		}
		if launchers[n.Launcher] {
			return d, "it was never begun", changed.Add(orphanTime)
		}
		return d, "its launcher is gone", lost
	case DutySettle:
		if n.AllocatedTo == "" {
			if why := rules.Useless(n); why != "" {
				return d, why, changed
			}
			return Ready(n, rules)
		}
		if _, there := requests[n.AllocatedTo]; there {
			return DutyNone, "", time.Time{}
		}
		return d, "request " + n.AllocatedTo + " is gone", changed
	case DutyExpire:
		limit := holdLimit(n, rules.Hold)
		if rules.Frozen[n.ID] {
			limit = holdLimit(n, 0) // what its holder has said
		}
		if limit == 0 || rules.adrift() {
			return DutyNone, "", time.Time{}
		}
		return d, "it was held for " + limit.String(), rules.since(n).Add(limit)
	case DutyRemove:
		if n.State == zkmodel.NodeInUse || n.State == zkmodel.NodeBuilding {
			return d, "the session that had it is gone", lost
		}
		return d, "it is " + string(n.State), changed
	}
	return DutyNone, "", time.Time{}
}

// InLaunch reports whether a node was being launched.
func InLaunch(n *zkmodel.Node) bool {
	return n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding
}

// Ready is what a ready node needs that is nobody's: an end, once it is
// older than its label allows.
func Ready(n *zkmodel.Node, rules Rules) (Duty, string, time.Time) {
	var limit time.Duration
	for _, label := range n.Type {
		if own := rules.Ready[label]; own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	if limit == 0 || n.Launcher == schedule.StaticLauncher || rules.adrift() || rules.Frozen[n.ID] {
		return DutyNone, "", time.Time{}
	}
	return DutySettle, "it was ready for " + limit.String(), rules.since(n).Add(limit)
}

// holdLimit is how long a node may be held: the shorter of its own limit and the
// configuration's; 0 is for ever.
func holdLimit(n *zkmodel.Node, most time.Duration) time.Duration {
	own := time.Duration(n.HoldExpiration) * time.Second
	if own <= 0 || most > 0 && most < own {
		own = most
	}
	return max(own, 0)
}

// Behind is how far our clock is behind ZooKeeper's, negative when it is early: as was measured, or
// more, should it have moved since: nothing in the tree can be younger than now. Without that,
// a host whose clock is late by a minute would leave each used node alone for that minute.
func Behind(s *schedule.Snapshot) time.Duration {
	lag := s.Lag
	for _, n := range s.Nodes {
		lag = max(lag, n.Stat.Mtime.Sub(s.Now))
	}
	for _, r := range s.Requests {
		lag = max(lag, r.Stat.Mtime.Sub(s.Now))
	}
	return lag
}
