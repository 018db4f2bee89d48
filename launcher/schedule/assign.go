package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rendezvous"
)

// Assign decides over every request that waits: the best first, each with what
// the ones before it have left. It has no side effects. Requests that others
// have, or that are done, get no decision.
func Assign(s *Snapshot) []Decision {
	var a *assignment // made when there is something to decide, which for most looks there is not
	var decisions []Decision
	for _, r := range ordered(s.Requests) {
		if r.Broken != nil || s.Busy[r.ID] {
			continue
		}
		switch r.State {
		case zkmodel.RequestRequested:
			if a == nil {
				a = newAssignment(s)
			}
			decisions = append(decisions, a.decide(r))
		case zkmodel.RequestPending:
			if s.Lost[r.ID] {
				decisions = append(decisions, Reclaim{About{r, "its launcher is gone"}})
			}
		}
	}
	return decisions
}

// ordered are requests in the order in which they are served.
func ordered(requests []*zkmodel.Request) []*zkmodel.Request {
	requests = slices.Clone(requests)
	slices.SortStableFunc(requests, zkmodel.CompareRequests)
	return requests
}

// assignment is what is left while Assign goes through the requests.
type assignment struct {
	*Snapshot
	used    *usage
	leaving *usage // of used, what is on its way out
	// reserved is the room that is kept for requests for which idle nodes were evicted, and freed holds
	// the pools and providers of these nodes.
	reserved *usage
	freed    map[PoolKey]bool
	claims   map[PoolKey]*zkmodel.Request // the first that waits for room, by pool and provider
	served   map[string]bool              // see allocated
	tenants  map[string]providers.Resources
	ready    *idleNodes
	owing    map[string]map[string]string // nodes whose machines may yet be made, by request and provider
	uses     map[string]*lesson.Use       // of the clouds that do not tell their limits, or refused, by provider
	room     map[string]int               // provider to launches that may still begin; -1 is any number
	mine     map[string]bool              // ids of our pools
	said     answers                      // to the last request
	waits    queues                       // for room, by pool id
	shared   queues                       // for room in all of a provider, by provider
	patient  queues                       // for the limit of a tenant, by tenant
	phantoms *phantoms
}

func newAssignment(s *Snapshot) *assignment {
	gone := leavers(s)
	a := &assignment{
		Snapshot: s, tenants: tenantUsage(s), reserved: newUsage(nil, nil), freed: freedPools(s, gone), claims: map[PoolKey]*zkmodel.Request{},
		used: newUsage(s.Nodes, s.Pools), leaving: newUsage(gone, s.Pools), ready: newIdleNodes(s.Nodes, s.Evicted, s.Frozen), owing: owing(s.Nodes),
		uses: map[string]*lesson.Use{}, room: map[string]int{}, mine: map[string]bool{}, waits: queues{}, shared: queues{}, patient: queues{},
		phantoms: newPhantoms(s),
	}
	for _, p := range s.Pools {
		a.room[p.Provider] = p.Room
		a.mine[p.ID] = true
	}
	for name, use := range s.Uses {
		a.uses[name] = &lesson.Use{Held: use.Held, Flying: maps.Clone(use.Flying), Launches: use.Launches}
	}
	return a
}

// decide asks each of our pools and takes the best answer.
func (a *assignment) decide(r *zkmodel.Request) Decision {
	able := a.candidates(r)
	said := a.ask(r, able) // until the next request
	if best := best(a, r, said.yes); best != nil {
		return a.accept(r, best, able)
	}
	if first := best(a, r, said.later); first != nil {
		a.claim(r, said.later)
		d := a.wait(r, first)
		d.Short = shortProviders(said.later)
		return d
	}
	if no, declined := a.declines(r, said); declined {
		if other := Awaited(a.Away, a.Registered, r); other != nil {
			return Wait{About: About{r, other.Why()}, Cause: Absent, Again: other.Until}
		}
		return no
	}
	if other := best(a, r, said.others); other != nil {
		return Yield{About: About{r, other.reason}}
	}
	return Yield{About: About{r, "every pool of this launcher has declined it"}}
}

// declines is the decision of those of our pools that can never serve a request.
// They say so although others of ours leave it to them, or nobody would ever
// answer.
func (a *assignment) declines(r *zkmodel.Request, said *answers) (Decline, bool) {
	if said.none() && len(a.Registered) > 0 && DeclinedByAll(a.Registered, r) {
		// Who had not declined has left since.
		return Decline{About: About{r, cmp.Or(r.Reason, "every pool has declined it")}}, true
	}
	if len(said.never) == 0 {
		return Decline{}, false
	}
	d := Decline{About: About{r, said.never[0].reason}, Reasons: map[string]string{}}
	for _, no := range said.never {
		d.Pools = append(d.Pools, no.pool.ID)
		d.Reasons[no.pool.ID] = no.reason
		if no.imageless {
			d.Imageless = append(d.Imageless, no.pool.ID)
		}
	}
	return d, true
}

// accept is the decision over a request that can be served now. What it takes is
// booked, also when another launcher takes it, or when we must lock the quota
// first: those that come after it must not take its room.
func (a *assignment) accept(r *zkmodel.Request, y *yes, able []candidate) Decision {
	a.take(r, y)
	var since time.Time
	if other := preferredPool(able, r); other != "" {
		var known bool
		if since, known = a.Since[r.ID]; !known {
			since = a.Now
		}
		if due := since.Add(a.Grace); due.After(a.Now) {
			return Yield{About{r, "pool " + other + " takes it first"}, since, due}
		}
	}
	_, limited := a.Tenants[r.TenantName] // who is usesQuota over all providers, ready nodes too
	usesQuota := len(y.needs) > 0 || limited
	if usesQuota && !y.pool.HoldsQuota {
		cause, reason := a.quotaWait(y.pool)
		return Wait{About: About{r, reason}, Cause: cause, Pool: y.pool, NeedsQuota: true, Since: since}
	}
	return Accept{
		About: About{r, fmt.Sprintf("pool %s of %s has room", y.pool.Name, y.pool.Provider)}, Pool: y.pool, Places: y.places, Zone: y.zone, UsesQuota: usesQuota, Since: since,
		Asked: lesson.Asked{Round: y.pool.Learned.Lesson.Round, Kind: y.kind},
	}
}

// quotaWait says why the lock of a quota is awaited: another launcher may have it only if one is
// registered for the provider.
func (a *assignment) quotaWait(p *Pool) (Cause, string) {
	for _, c := range a.Registered {
		if c.ProviderName == p.Provider && !slices.ContainsFunc(a.Pools, func(ours *Pool) bool { return ours.ID == c.ID }) {
			return Busy, "another launcher has the quota of provider " + p.Provider + " at the moment"
		}
	}
	return Undecided, "the launcher locks the quota of provider " + p.Provider
}

// wait is the decision over a request that may be served later.
func (a *assignment) wait(r *zkmodel.Request, l *later) Wait {
	d := Wait{About: About{r, l.reason}, Cause: l.cause, Pool: l.pool, Queued: l.queued}
	say := l.tenant && a.patient.join(r.TenantName, r)
	if l.queued && !l.alone {
		say = a.waits.join(l.pool.ID, r) || say
		say = l.shared && a.shared.join(l.pool.Provider, r) || say
	}
	if say {
		_, d.Again = a.drains(r)
	}
	if len(l.evict) == 0 {
		a.reserve(l)
		return d
	}
	if d.NeedsQuota = !l.pool.HoldsQuota; d.NeedsQuota {
		return d
	}
	d.Evict = l.evict
	for _, id := range l.evict {
		n := a.ready.remove(id)
		key := PoolKey{n.Provider, n.Pool}
		a.leaving.add(key, NodeResources(n, a.offers(key)))
	}
	a.reserve(l)
	return d
}

// preferredPool is the pool of another launcher that is to take a request first, or
// "" when it is one of ours: rendezvous hashing spreads the requests over all
// pools that can serve them, and gives those of a launcher that has died to the
// others.
func preferredPool(able []candidate, r *zkmodel.Request) string {
	allPaused := !slices.ContainsFunc(able, func(c candidate) bool { return !c.paused })
	ids := make([]string, 0, len(able))
	for _, c := range able {
		if c.paused == allPaused {
			ids = append(ids, c.id)
		}
	}
	owner := rendezvous.Owner(ids, r.ID)
	if slices.ContainsFunc(able, func(c candidate) bool { return c.ours && c.id == owner }) {
		return ""
	}
	return owner
}

// shortProviders are the providers that lack room, by what their pools answered.
func shortProviders(answers []later) []string {
	var names []string
	for _, l := range answers {
		if (l.shared || l.full) && !slices.Contains(names, l.pool.Provider) {
			names = append(names, l.pool.Provider)
		}
	}
	return names
}

// take books what a request uses, for those that come after it.
func (a *assignment) take(r *zkmodel.Request, y *yes) {
	provider := y.pool.Provider
	a.used.add(PoolKey{provider, y.pool.Name}, y.needs)
	if r.TenantName != "" {
		a.tenants[r.TenantName] = Plus(a.tenants[r.TenantName], y.all)
	}
	for _, place := range y.places {
		if place.Node != "" {
			a.ready.remove(place.Node)
			continue
		}
		if a.room[provider] > 0 { // a request of many nodes may go beyond
			a.room[provider]--
		}
		if use := a.uses[provider]; use != nil {
			Plus(use.Flying, place.Needs)
			use.Launches++
		}
	}
}
