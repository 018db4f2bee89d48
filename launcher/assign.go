package launcher

import (
	"cmp"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
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
	Pool    *Pool   // of Accept, and of Wait the pool that it waits for
	Places  []Place // of Accept: one for each of the request's labels, in order
	Zone    string  // of Accept: the availability zone of all new nodes; "" is any
	// Declining are the ids of our pools that decline.
	Declining []string
	// Evict are idle nodes that stand in the way of a request that waits for room.
	Evict []string
	// Queued: of Wait, it is for room in the pool.
	Queued bool
	// Counted: of Accept, it uses quota, so the lock of the quota must be ours.
	Counted bool
	// Uncounted: the quota of the pool's provider must be locked first.
	Uncounted bool
	// Since tells from when on it could be accepted that another launcher is to
	// take first; zero when it is ours to take. Of Leave, it is ours from Again on.
	Since time.Time
	// Again is when the decision may be another although nothing happens.
	Again time.Time
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

// assignment is what is left while Assign goes through the requests.
type assignment struct {
	*Snapshot
	table   table
	used    *usage
	leaving *usage // of used, what is on its way out
	tenants map[string]providers.Resources
	ready   *shelf
	room    map[string]int              // provider to launches that may still begin; -1 is any number
	waits   map[string]*zkmodel.Request // the oldest request so far that waits for room, by pool id
	shared  map[string]*zkmodel.Request // the oldest that waits for room in all of a provider, by provider
	patient map[string]*zkmodel.Request // the oldest that waits for its tenant's limit, by tenant
}

func newAssignment(s *Snapshot) *assignment {
	a := &assignment{
		Snapshot: s, table: newTable(), tenants: tenantUsage(s),
		used: newUsage(s.Nodes, s.Pools), leaving: newUsage(leavers(s), s.Pools), ready: newShelf(s.Nodes, s.Evicted),
		room: map[string]int{}, waits: map[string]*zkmodel.Request{}, shared: map[string]*zkmodel.Request{}, patient: map[string]*zkmodel.Request{},
	}
	for _, p := range s.Pools {
		a.room[p.Provider] = p.Room
	}
	return a
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
		return a.accept(r, best, able)
	}
	if first := a.best(answers, Wait); first != nil {
		return a.wait(r, first)
	}
	if d, some := declines(r, answers); some {
		return d
	}
	if len(answers) == 0 && len(a.Registered) > 0 && declinedByAll(a.Registered, r) {
		// Who had not declined has left since.
		return Decision{Request: r, Verdict: Decline, Reason: cmp.Or(r.Reason, "every pool has declined it")}
	}
	d := Decision{Request: r, Verdict: Leave, Reason: "every pool of this launcher has declined it"}
	if other := a.best(answers, Leave); other != nil {
		d.Reason = other.reason
	}
	return d
}

// declines is the decision of those of our pools that can never serve a request.
// They say so although others of ours leave it to them, or nobody would ever
// answer.
func declines(r *zkmodel.Request, answers []judgement) (Decision, bool) {
	d := Decision{Request: r, Verdict: Decline}
	for _, no := range answers {
		if no.verdict != Decline {
			continue
		}
		if len(d.Declining) == 0 {
			d.Reason = no.reason
		}
		d.Declining = append(d.Declining, no.pool.ID)
	}
	return d, len(d.Declining) > 0
}

// accept is the decision over a request that can be served now. What it takes is
// booked, also when another launcher takes it, or when we must lock the quota
// first: those that come after it must not take its room.
func (a *assignment) accept(r *zkmodel.Request, j *judgement, able []candidate) Decision {
	a.take(r, j)
	_, limited := a.Tenants[r.TenantName] // who is counted over all providers, ready nodes too
	d := Decision{
		Request: r, Verdict: Accept, Reason: j.reason, Pool: j.pool, Places: j.places, Zone: j.zone,
		Counted: len(j.needs) > 0 || limited,
	}
	if other := firstTaker(able, r); other != "" {
		since, known := a.Since[r.ID]
		if !known {
			since = a.Now
		}
		d.Since = since
		if due := since.Add(a.Grace); due.After(a.Now) {
			d.Verdict, d.Again = Leave, due
			d.Reason = "pool " + other + " takes it first"
			return d
		}
	}
	if d.Counted && !j.pool.Counted {
		d.Verdict, d.Uncounted = Wait, true
		d.Reason = "the quota of provider " + j.pool.Provider + " is another launcher's at the moment"
	}
	return d
}

// wait is the decision over a request that may be served later.
func (a *assignment) wait(r *zkmodel.Request, j *judgement) Decision {
	d := Decision{Request: r, Verdict: Wait, Reason: j.reason, Pool: j.pool, Queued: j.queued}
	if j.tenant && older(r, a.patient[r.TenantName]) {
		a.patient[r.TenantName] = r
		_, d.Again = a.drains(r)
	}
	if !j.queued {
		return d
	}
	if older(r, a.waits[j.pool.ID]) {
		a.waits[j.pool.ID] = r
		_, d.Again = a.drains(r)
	}
	if j.shared && older(r, a.shared[j.pool.Provider]) {
		a.shared[j.pool.Provider] = r
		_, d.Again = a.drains(r)
	}
	if len(j.evict) > 0 {
		if d.Uncounted = !j.pool.Counted; !d.Uncounted {
			d.Evict = j.evict
			for _, id := range j.evict {
				if n := a.ready.remove(id); n != nil {
					key := poolKey{n.Provider, n.Pool}
					a.leaving.add(key, nodeResources(n, a.offers(key)))
				}
			}
		}
	}
	return d
}

// firstTaker is the pool of another launcher that is to take a request first, or
// "" when it is one of ours: rendezvous hashing spreads the requests over all
// pools that can serve them, and gives those of a launcher that has died to the
// others.
func firstTaker(able []candidate, r *zkmodel.Request) string {
	var ids, paused []string
	ours := map[string]bool{}
	for _, c := range able {
		ours[c.id] = c.ours
		if c.paused {
			paused = append(paused, c.id)
		} else {
			ids = append(ids, c.id)
		}
	}
	if len(ids) == 0 {
		ids = paused
	}
	if owner := recipe.Owner(ids, r.ID); !ours[owner] {
		return owner
	}
	return ""
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

// take books what a request uses, for those that come after it.
func (a *assignment) take(r *zkmodel.Request, j *judgement) {
	a.used.add(poolKey{j.pool.Provider, j.pool.Name}, j.needs)
	if r.TenantName != "" {
		a.tenants[r.TenantName] = plus(a.tenants[r.TenantName], j.all)
	}
	for _, place := range j.places {
		if place.Node != "" {
			a.ready.remove(place.Node)
		} else if a.room[j.pool.Provider] > 0 { // a request of many nodes may go beyond
			a.room[j.pool.Provider]--
		}
	}
}
