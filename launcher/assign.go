package launcher

import (
	"cmp"
	"fmt"
	"slices"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Verdict is what is decided over a request.
type Verdict string

// The verdicts.
const (
	// Accept: a pool takes the request now, with the nodes of the decision.
	Accept Verdict = "accept"
	// Decline: none of our pools can ever serve it.
	Decline Verdict = "decline"
	// Wait: one of our pools may serve it later.
	Wait Verdict = "wait"
	// Leave: it is another launcher's business.
	Leave Verdict = "leave"
	// Reclaim: its launcher died; it begins again.
	Reclaim Verdict = "reclaim"
)

// Decision is what becomes of one request, and why.
type Decision struct {
	Request *zkmodel.Request
	Verdict Verdict
	Reason  string
	Pool    *Pool   // of Accept
	Places  []Place // of Accept: one for each of the request's labels, in order
	// Declining are the ids of our pools that decline.
	Declining []string
}

// Place is one node that a request gets.
type Place struct {
	Label string
	// Node is the id of a ready node to be reused; "" launches a new one.
	Node  string
	Needs providers.Resources // of a new one
}

// Assign decides over every request that waits: the best first, each with what
// the ones before it have left. It has no side effects. Requests that others
// have, or that are done, get no decision.
func Assign(s *Snapshot) []Decision {
	a := newAssignment(s)
	requests := slices.Clone(s.Requests)
	slices.SortStableFunc(requests, zkmodel.CompareRequests)
	var decisions []Decision
	for _, r := range requests {
		if r.Broken != nil || s.Busy[r.ID] {
			continue
		}
		switch a.table.request(r.State) {
		case dutyAssign:
			decisions = append(decisions, a.decide(r))
		case dutyReclaim:
			if s.Lost[r.ID] {
				decisions = append(decisions, Decision{Request: r, Verdict: Reclaim, Reason: "its launcher is gone"})
			}
		}
	}
	return decisions
}

// assignment is the state of one run of Assign.
type assignment struct {
	*Snapshot
	table table
	used  *usage
	ready *shelf
	room  map[string]int    // launches left by max-concurrency, per provider; negative is unlimited
	waits map[string]string // the first request that waits for room, per pool
}

func newAssignment(s *Snapshot) *assignment {
	a := &assignment{
		Snapshot: s, table: newTable(),
		used: newUsage(s.Nodes, s.Pools), ready: newShelf(s.Nodes),
		room: map[string]int{}, waits: map[string]string{},
	}
	for _, p := range s.Pools {
		a.room[p.Provider] = p.Room
	}
	return a
}

// judgement is what one pool says to one request.
type judgement struct {
	pool    *Pool
	verdict Verdict
	reason  string
	places  []Place
	needs   providers.Resources
	queued  bool // of Wait: for room, so that those who come later queue behind it
}

// decide asks each of our pools and takes the best answer.
func (a *assignment) decide(r *zkmodel.Request) Decision {
	var answers []judgement
	able := candidates(a.Registered, a.Pools, r)
	for _, p := range a.Pools {
		if !r.DeclinedByPool(p.ID) {
			answers = append(answers, a.judge(p, r, able))
		}
	}
	if best := a.best(answers, Accept); best != nil {
		a.take(best)
		return Decision{Request: r, Verdict: Accept, Reason: best.reason, Pool: best.pool, Places: best.places}
	}
	if first := a.best(answers, Wait); first != nil {
		if first.queued {
			a.waits[first.pool.ID] = cmp.Or(a.waits[first.pool.ID], r.ID)
		}
		return Decision{Request: r, Verdict: Wait, Reason: first.reason, Pool: first.pool}
	}
	if other := a.best(answers, Leave); other != nil || len(answers) == 0 {
		d := Decision{Request: r, Verdict: Leave, Reason: "every pool of this launcher has declined it"}
		if other != nil {
			d.Reason = other.reason
		}
		return d
	}
	d := Decision{Request: r, Verdict: Decline, Reason: answers[0].reason}
	for _, no := range answers {
		d.Declining = append(d.Declining, no.pool.ID)
	}
	return d
}

// best is the answer with this verdict of the pool with the smallest priority
// number; among equals the one that reuses most, then the one configured first.
func (a *assignment) best(answers []judgement, v Verdict) *judgement {
	var best *judgement
	for i := range answers {
		j := &answers[i]
		if j.verdict != v {
			continue
		}
		if best == nil || cmp.Or(
			cmp.Compare(j.pool.Priority, best.pool.Priority),
			cmp.Compare(j.needs[providers.Instances], best.needs[providers.Instances]),
		) < 0 {
			best = j
		}
	}
	return best
}

// take books what an accepted request uses, for those that come after it.
func (a *assignment) take(j *judgement) {
	key := poolKey{j.pool.Provider, j.pool.Name}
	a.used.add(key, j.needs)
	for _, place := range j.places {
		if place.Node != "" {
			a.ready.remove(key, place.Node)
		} else if a.room[j.pool.Provider] > 0 { // a request of many nodes may go beyond
			a.room[j.pool.Provider]--
		}
	}
}

// judge is what pool p says to request r. The order of the questions is that of
// Nodepool: whose is it, can it ever be served, can it be served now.
func (a *assignment) judge(p *Pool, r *zkmodel.Request, able []candidate) judgement {
	say := func(v Verdict, format string, args ...any) judgement {
		return judgement{pool: p, verdict: v, reason: fmt.Sprintf(format, args...)}
	}
	if len(r.NodeTypes) == 0 {
		return say(Decline, "it names no label")
	}
	if p.Idle {
		return say(Leave, "provider %s takes no requests (max-concurrency 0)", p.Provider)
	}
	if reason := others(p, r, able); reason != "" {
		return say(Leave, "%s", reason)
	}
	if reason := impossible(p, r); reason != "" {
		return say(Decline, "%s", reason)
	}
	if reason := unknown(p, r); reason != "" {
		return say(Wait, "%s", reason)
	}
	places, needs := a.arrange(p, r)
	if reason := neverFits(p, needs); reason != "" {
		return say(Decline, "%s", reason)
	}
	j := judgement{pool: p, verdict: Accept, places: places, needs: needs}
	if len(needs) > 0 {
		if reason := a.notNow(p, j); reason != "" {
			no := say(Wait, "%s", reason)
			no.queued = true
			return no
		}
	}
	j.reason = fmt.Sprintf("pool %s of %s has room", p.Name, p.Provider)
	return j
}

// arrange finds a place for every label: a ready node where the request allows
// one, else a new one.
func (a *assignment) arrange(p *Pool, r *zkmodel.Request) ([]Place, providers.Resources) {
	key := poolKey{p.Provider, p.Name}
	places := make([]Place, len(r.NodeTypes))
	taken := map[string]bool{}
	var needs providers.Resources
	for i, label := range r.NodeTypes {
		places[i] = Place{Label: label}
		if r.Reuse {
			places[i].Node = a.ready.find(key, label, taken)
			taken[places[i].Node] = true
		}
		if places[i].Node == "" {
			places[i].Needs = p.Offers[label].Needs
			needs = plus(needs, places[i].Needs)
		}
	}
	return places, needs
}

// notNow says why pool p cannot launch right now, or "".
func (a *assignment) notNow(p *Pool, j judgement) string {
	if p.Hold != "" {
		return p.Hold
	}
	if first := a.waits[p.ID]; first != "" {
		return fmt.Sprintf("pool %s is full, and request %s comes first", p.Name, first)
	}
	if reason := a.used.shortage(p, j.needs); reason != "" {
		return reason
	}
	if a.room[p.Provider] == 0 {
		return fmt.Sprintf("provider %s is busy: max-concurrency", p.Provider)
	}
	return ""
}
