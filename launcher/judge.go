package launcher

import (
	"fmt"
	"hash/fnv"
	"slices"

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
	tenant  bool                // of Wait: for its tenant's other nodes to go
	shared  bool                // of a queued Wait: the provider is full, whatever room the pool has
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
	if p.Fixed {
		j.all = nil // tenants are not limited in machines that exist already
	}
	if reason := a.tenantNever(r, j.all); reason != "" {
		return say(Wait, "%s", reason) // until somebody changes them, as with Nodepool; for nobody else
	}
	if reason := a.tenantFull(r, j.all); reason != "" {
		no := say(Wait, "%s", reason) // not queued: others need not wait for this tenant
		no.tenant = true
		return no
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
	switch {
	case p.Fixed:
		no.queued, no.reason = false, fmt.Sprintf("no node of pool %s of %s is free", p.Name, p.Provider)
		return no
	case p.Hold != "":
		no.reason = p.Hold
		return no
	}
	if first := a.waits[p.ID]; first != nil {
		if yes, _ := a.drains(first); yes {
			no.reason = fmt.Sprintf("pool %s is full, and request %s comes first", p.Name, first.ID)
			return no
		}
	}
	if first := a.shared[p.Provider]; first != nil && p.Cloud != nil {
		if yes, _ := a.drains(first); yes {
			no.reason = fmt.Sprintf("provider %s is full, and request %s comes first", p.Provider, first.ID)
			return no
		}
	}
	if reason := a.used.shortage(p, needs); reason != "" {
		no.reason, no.shared = reason, a.used.cloudShort(p, needs)
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
// idle nodes together would not be. They are the pool's own, and where the provider
// is full those of its other pools after them.
func (a *assignment) evictions(p *Pool, needs providers.Resources) []string {
	keys := []poolKey{{p.Provider, p.Name}}
	if a.used.cloudShort(p, needs) {
		for _, other := range a.Pools {
			if other.Provider == p.Provider && other != p {
				keys = append(keys, poolKey{other.Provider, other.Name})
			}
		}
	}
	if !slices.ContainsFunc(keys, a.ready.has) {
		return nil // as it is with most that wait
	}
	left := a.used.without(a.leaving)
	var evict []string
	for _, key := range keys {
		for n := range a.ready.idle(key) {
			if left.shortage(p, needs) == "" {
				return evict
			}
			left.subtract(key, nodeResources(n, a.offers(key)))
			evict = append(evict, n.ID)
		}
	}
	if left.shortage(p, needs) != "" {
		return nil
	}
	return evict
}

// offers are the labels of one of our pools.
func (a *assignment) offers(key poolKey) map[string]Offer {
	for _, p := range a.Pools {
		if p.Provider == key.provider && p.Name == key.pool {
			return p.Offers
		}
	}
	return nil
}
