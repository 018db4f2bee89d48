package schedule

import (
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// EvictedReason is the reason in the record of an idle node that is deleted to make room for a request.
const EvictedReason = "a request needs its room"

// providerKey names a provider among pools.
func providerKey(p *Pool) PoolKey { return PoolKey{Provider: p.Provider} }

// freedPools are the pools and providers in which idle nodes were evicted within overtakeTime. A
// deletion that takes longer may never end, and no room is reserved because of it.
func freedPools(s *Snapshot, leaving []*zkmodel.Node) map[PoolKey]bool {
	freed := map[PoolKey]bool{}
	for _, n := range leaving {
		recent := n.Reason == EvictedReason && s.Now.Sub(n.Since())+s.Lag < overtakeTime
		if recent || s.Evicted[n.ID] {
			freed[PoolKey{n.Provider, n.Pool}], freed[PoolKey{Provider: n.Provider}] = true, true
		}
	}
	return freed
}

// left is what is used once all is gone that is on its way out, with the room that is reserved.
func (a *assignment) left() *usage {
	left := a.used.without(a.leaving)
	for key, amount := range a.reserved.pools {
		left.add(key, amount)
	}
	return left
}

// reserve keeps the room that eviction frees for the request that it was freed for: later requests
// get only what is left beside it.
func (a *assignment) reserve(l *later) {
	key := PoolKey{l.pool.Provider, l.pool.Name}
	freed := len(l.evict) > 0 || a.freed[key] || l.shared && a.freed[providerKey(l.pool)]
	if len(l.needs) == 0 || !freed {
		return
	}
	if _, lacks := a.left().shortage(l.pool, l.needs); !lacks {
		a.reserved.add(key, l.needs)
	}
}

// shortage says what is missing for need in pool p, and whether something is: now, or beside the
// room that is reserved. cloud reports whether the limits of the provider are in the way.
func (a *assignment) shortage(p *Pool, need providers.Resources) (why string, lacks, cloud bool) {
	if why, lacks = a.used.shortage(p, need); lacks || len(a.reserved.pools) == 0 {
		return why, lacks, a.used.cloudShort(p, need)
	}
	left := a.left()
	if why, lacks = left.shortage(p, need); lacks {
		why += " (with room that is being freed for another request)"
	}
	return why, lacks, left.cloudShort(p, need)
}

// claim notes that a request waits for room in pools, so that no stock is launched there.
func (a *assignment) claim(r *zkmodel.Request, waits []later) {
	for _, l := range waits {
		if !l.queued || l.alone {
			continue
		}
		keys := []PoolKey{{l.pool.Provider, l.pool.Name}}
		if l.shared {
			keys = append(keys, providerKey(l.pool))
		}
		for _, key := range keys {
			if a.claims[key] == nil {
				a.claims[key] = r
			}
		}
	}
}

// claimant is a pending request that can use the room in pool p that stock needs; nil when there is none.
func (a *assignment) claimant(p *Pool, need providers.Resources) *zkmodel.Request {
	if r := a.claims[PoolKey{p.Provider, p.Name}]; r != nil {
		return r
	}
	if r := a.claims[providerKey(p)]; r != nil && p.sharesLimits() {
		return r
	}
	// Nothing is decided over requests that are left alone for a moment after an error.
	need = Plus(nil, need)
	for _, r := range a.Requests {
		if r.State != zkmodel.RequestRequested || !a.Busy[r.ID] || r.Broken != nil || r.Requestor == MinReadyRequestor ||
			r.Provider != "" && r.Provider != p.Provider || !p.offers(r.NodeTypes) || r.DeclinedByPool(p.ID) || a.allocated()[r.ID] {
			continue
		}
		for _, label := range r.NodeTypes {
			Plus(need, p.Offers[label].Needs)
		}
		if _, lacks := a.used.shortage(p, need); lacks {
			return r
		}
	}
	return nil
}

// allocated holds the requests that have nodes: they are accepted, also where their records do not show it yet.
func (a *assignment) allocated() map[string]bool {
	if a.served == nil {
		a.served = map[string]bool{}
		for _, n := range a.Nodes {
			a.served[n.AllocatedTo] = true
		}
	}
	return a.served
}
