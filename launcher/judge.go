package launcher

import (
	"fmt"
	"hash/fnv"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// judgement is what one pool says to one request.
type judgement struct {
	pool    *Pool
	verdict Verdict
	reason  string
	places  []Place
	zone    string
	needs   providers.Resources // of new nodes
	all     providers.Resources // of all nodes
	queued  bool                // of Wait: for room, so that those who come later queue behind it
	evict   []string            // of a queued Wait: idle nodes that stand in its way
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
	j := a.arrange(p, r)
	if reason := neverFits(p, j.needs); reason != "" {
		return say(Decline, "%s", reason)
	}
	if reason := a.tenantFull(r, j.all); reason != "" {
		return say(Wait, "%s", reason) // not queued: others need not wait for this tenant
	}
	if len(j.needs) > 0 {
		if no := a.notNow(p, r, j.needs); no.reason != "" {
			return no
		}
	}
	j.reason = fmt.Sprintf("pool %s of %s has room", p.Name, p.Provider)
	return j
}

// arrange finds a place for every label: a ready node where the request allows
// one, else a new one. All are in one availability zone, where there are zones:
// that of the first node to be reused, else one that the request's id draws.
func (a *assignment) arrange(p *Pool, r *zkmodel.Request) judgement {
	j := judgement{pool: p, verdict: Accept, places: make([]Place, len(r.NodeTypes))}
	taken := map[string]bool{}
	for i, label := range r.NodeTypes {
		j.places[i] = Place{Label: label}
		if r.Reuse || p.Fixed {
			if n := a.ready.find(poolKey{p.Provider, p.Name}, label, j.zone, taken); n != nil {
				j.places[i].Node, taken[n.ID] = n.ID, true
				if j.zone == "" {
					j.zone = n.AZ
				}
			}
		}
		needs := p.Offers[label].Needs
		j.all = plus(j.all, needs)
		if j.places[i].Node == "" {
			j.places[i].Needs = needs
			j.needs = plus(j.needs, needs)
		}
	}
	if zones := p.Zones; j.zone == "" && len(zones) > 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.ID)) // never fails
		j.zone = zones[int(h.Sum32()%uint32(len(zones)))]
	}
	return j
}

// notNow says why pool p cannot launch right now; without a reason it can.
func (a *assignment) notNow(p *Pool, r *zkmodel.Request, needs providers.Resources) judgement {
	no := judgement{pool: p, verdict: Wait, queued: r.Requestor != minReadyRequestor}
	switch first := a.waits[p.ID]; {
	case p.Fixed:
		no.queued, no.reason = false, fmt.Sprintf("no node of pool %s of %s is free", p.Name, p.Provider)
		return no
	case p.Hold != "":
		no.reason = p.Hold
		return no
	case first != nil:
		if yes, _ := drains(first, a.Now); yes {
			no.reason = fmt.Sprintf("pool %s is full, and request %s comes first", p.Name, first.ID)
			return no
		}
	}
	if reason := a.used.shortage(p, needs); reason != "" {
		no.reason = reason
		if no.queued {
			no.evict = a.evictions(p, needs)
		}
		return no
	}
	if a.room[p.Provider] == 0 {
		no.reason = fmt.Sprintf("provider %s is busy: max-concurrency", p.Provider)
	}
	return no
}

// evictions are the idle nodes, the oldest first, without which needs would fit
// once all is gone that is on its way out; none when that is enough, or when all
// idle nodes together would not be.
func (a *assignment) evictions(p *Pool, needs providers.Resources) []string {
	key := poolKey{p.Provider, p.Name}
	if !a.ready.has(key) {
		return nil // as it is with most that wait
	}
	left := a.used.without(a.leaving)
	var evict []string
	for n := range a.ready.idle(key) {
		if left.shortage(p, needs) == "" {
			return evict
		}
		left.subtract(key, nodeResources(n, p.Offers))
		evict = append(evict, n.ID)
	}
	if left.shortage(p, needs) != "" {
		return nil
	}
	return evict
}
