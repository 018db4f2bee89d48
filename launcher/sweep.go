package launcher

import (
	"context"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

const (
	// lossTime is how long a node that should be locked may look unlocked: the
	// mirror sees record and lock one after the other.
	lossTime = 500 * time.Millisecond
	// orphanTime is how old a record must be that says nothing of its maker.
	orphanTime = time.Minute
)

// chore is what is to be done with one unlocked node.
type chore struct {
	node *zkmodel.Node
	duty duty
	why  string
}

// rules are what the chores of one launcher depend on.
type rules struct {
	ages
	// served holds the providers whose nodes are ours to look after: those that are
	// open, also without a pool.
	served map[string]bool
	// disabled holds our pools that are: nobody is given their ready nodes any more.
	disabled map[poolKey]bool
	// lag is how far our clock is behind ZooKeeper's, as far as we know: the times
	// in its stats are its own, those in records and timers are ours.
	lag time.Duration
}

// useless tells whether a ready node cannot be given to anybody.
func (r rules) useless(n *zkmodel.Node) bool {
	return r.disabled[poolKey{n.Provider, n.Pool}] && n.Launcher != staticLauncher
}

// ages are how old nodes may become; 0 is any age.
type ages struct {
	hold  time.Duration
	ready map[string]time.Duration // nobody's, by label
}

func agesOf(cfg *configs.Config) ages {
	a := ages{hold: cfg.MaxHoldAge, ready: map[string]time.Duration{}}
	for _, l := range cfg.Labels {
		a.ready[l.Name] = l.MaxReadyAge
	}
	return a
}

// chores finds the nodes that something is to be done with now, and when to look
// again. It has no side effects.
func chores(s *Snapshot, t table, mine func(id string) bool, rules rules) ([]chore, time.Time) {
	requests := make(map[string]zkmodel.RequestState, len(s.Requests))
	for _, r := range s.Requests {
		requests[r.ID] = r.State
	}
	launchers := map[string]bool{}
	for _, c := range s.Registered {
		launchers[c.ID] = true
	}
	var list []chore
	var again time.Time
	for _, n := range s.Nodes {
		if n.Locked || mine(n.ID) || n.Broken == nil && !rules.served[n.Provider] {
			continue
		}
		d, why, due := nodeChore(n, t, requests, launchers, rules)
		switch {
		case d == dutyNone:
		case due.After(s.Now):
			again = earlier(again, due)
		default:
			list = append(list, chore{n, d, why})
		}
	}
	return list, again
}

// nodeChore is what one unlocked node needs, why, and from when on.
func nodeChore(n *zkmodel.Node, t table, requests map[string]zkmodel.RequestState, launchers map[string]bool, rules rules) (duty, string, time.Time) {
	changed := n.Stat.Mtime.Add(-rules.lag)
	if n.Broken != nil { // somebody tried to lock a node that was gone
		return dutyRemove, "its record cannot be read", changed.Add(orphanTime)
	}
	switch d := t.node(n.State); d {
	case dutyRecover, dutyRemove:
		if inLaunch(n) && requests[n.AllocatedTo] == zkmodel.RequestPending {
			return dutyNone, "", time.Time{} // whoever takes the request over goes on with it
		}
	default:
	}
	switch d := t.node(n.State); d {
	case dutyRecover:
		if _, there := requests[n.AllocatedTo]; !there {
			return d, "its request is gone", changed.Add(lossTime)
		}
		if launchers[n.Launcher] {
			return d, "it was never begun", changed.Add(orphanTime)
		}
		return d, "its launcher is gone", changed.Add(lossTime)
	case dutySettle:
		if n.AllocatedTo == "" {
			if rules.useless(n) {
				return d, "its pool is disabled", changed
			}
			return readyChore(n, rules.ready)
		}
		if _, there := requests[n.AllocatedTo]; there {
			return dutyNone, "", time.Time{}
		}
		return d, "request " + n.AllocatedTo + " is gone", changed
	case dutyExpire:
		limit := holdLimit(n, rules.hold)
		if limit == 0 {
			return dutyNone, "", time.Time{}
		}
		return d, "it was held for " + limit.String(), n.StateTime.Time().Add(limit)
	case dutyRemove:
		if n.State == zkmodel.NodeInUse || n.State == zkmodel.NodeBuilding {
			return d, "whoever had it is gone", changed.Add(lossTime)
		}
		return d, "it is " + string(n.State), changed
	}
	return dutyNone, "", time.Time{}
}

// inLaunch tells whether somebody was launching a node.
func inLaunch(n *zkmodel.Node) bool {
	return n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding
}

// readyChore is what a ready node needs that is nobody's: an end, once it is
// older than its label allows.
func readyChore(n *zkmodel.Node, maxAge map[string]time.Duration) (duty, string, time.Time) {
	var limit time.Duration
	for _, label := range n.Type {
		if own := maxAge[label]; own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	if limit == 0 || n.Launcher == staticLauncher {
		return dutyNone, "", time.Time{}
	}
	return dutySettle, "it was ready for " + limit.String(), n.StateTime.Time().Add(limit)
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

// sweep starts a job for every node that needs one.
func (s *shift) sweep(ctx context.Context, snap *Snapshot) time.Time {
	s.lag = max(s.lag, behind(snap))
	r := s.rules()
	r.lag = s.lag
	list, again := chores(snap, s.table, s.own.mine, r)
	for _, c := range list {
		s.jobs.start("node "+c.node.ID, func() error { return s.tidy(ctx, c) })
	}
	return again
}

// rules are those of this launcher's configuration.
func (s *shift) rules() rules {
	r := rules{ages: agesOf(s.cfg), served: map[string]bool{}, disabled: map[poolKey]bool{}}
	for name, c := range s.clouds {
		_, err := c.use()
		r.served[name] = err == nil // it wakes us once it is open
	}
	for _, p := range s.pools {
		if p.config.MaxServers == 0 {
			r.disabled[poolKey{p.provider.Name, p.config.Name}] = true
		}
	}
	return r
}

// behind is how far our clock is behind ZooKeeper's at the least: nothing in the
// tree can be younger than now. Without it, a host whose clock is late by a
// minute would leave each used node alone for that minute.
func behind(s *Snapshot) time.Duration {
	var lag time.Duration
	for _, n := range s.Nodes {
		lag = max(lag, n.Stat.Mtime.Sub(s.Now))
	}
	for _, r := range s.Requests {
		lag = max(lag, r.Stat.Mtime.Sub(s.Now))
	}
	return lag
}
