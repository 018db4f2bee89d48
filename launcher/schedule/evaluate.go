package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// evaluate is what pool p says to request r. The order of the questions is that of
// Nodepool: whose is it, can it ever be served, can it be served now.
func (a *assignment) evaluate(p *Pool, r *zkmodel.Request, able []candidate) answer {
	if len(r.NodeTypes) == 0 {
		return never{said: said{p, "it names no label"}}
	}
	if why, failed := a.Failed[r.ID][p.ID]; failed {
		return never{said: said{p, why}}
	}
	if p.Idle {
		return others{said{p, fmt.Sprintf("provider %s takes no requests (max-concurrency 0)", p.Provider)}}
	}
	if why, so := a.elsewhere(p, r, able); so {
		return others{said{p, why}}
	}
	if why, frozen := p.frozen(r.NodeTypes); frozen {
		return later{said: said{p, why}, cause: Configuration}
	}
	if no, so := impossible(p, r); so {
		return no
	}
	if p.Paused != "" {
		return later{said: said{p, p.Paused}, cause: Held}
	}
	if why, so := unknown(p, r); so {
		return later{said: said{p, why}, cause: Provider}
	}
	y := a.arrange(p, r, "")
	if len(y.needs) > 0 && len(p.Zones) > 0 && y.zone != "" && !slices.Contains(p.Zones, y.zone) {
		y = a.arrange(p, r, drawZone(p, r)) // new nodes beside ready ones of a zone that is avoided
	}
	if why, exceeds := neverFits(p, y.needs); exceeds {
		return never{said: said{p, why}}
	}
	if p.Static {
		y.all = nil // tenants are not limited in machines that exist already
	}
	if why, exceeds := a.tenantNever(r, y.all); exceeds {
		return later{said: said{p, why}, cause: Tenant} // until they are changed, as with Nodepool; for no other
	}
	if why, full := a.tenantFull(r, y.all); full {
		return later{said: said{p, why}, cause: Tenant, tenant: true} // not queued: others need not wait for this tenant
	}
	if len(y.needs) == 0 {
		return y
	}
	return a.launchable(p, r, y)
}

// launchable is what pool p says to request r when new nodes are to be launched for it.
func (a *assignment) launchable(p *Pool, r *zkmodel.Request, y yes) answer {
	if node := a.owing[r.ID][p.Provider]; node != "" {
		return later{said: said{p, fmt.Sprintf("provider %s may still make node %s, whose creation it did not answer", p.Provider, node)}, cause: Provider}
	}
	if no := a.notNow(p, r, y.needs); no != nil {
		return *no
	}
	learned := a.learned(p, r, y)
	if learned.Wait {
		return a.unlearned(p, r, y.needs, learned)
	}
	y.kind = learned.Kind
	return y
}

// arrange finds a place for every label: a ready node where the request allows
// one, else a new one. All are in one availability zone, where there are zones:
// the one that is given, else that of the first node to be reused, else one that the request's id draws.
func (a *assignment) arrange(p *Pool, r *zkmodel.Request, zone string) yes {
	y := yes{said: said{pool: p}, zone: zone, places: make([]Place, len(r.NodeTypes))}
	single := len(r.NodeTypes) == 1 // as of most, for each of which each pool is asked: what it needs is not copied
	taken := map[string]bool{}
	for i, label := range r.NodeTypes {
		y.places[i] = Place{Label: label}
		if r.Reuse || p.Static {
			if n := a.ready.find(PoolKey{p.Provider, p.Name}, label, y.zone, taken); n != nil {
				y.places[i].Node, taken[n.ID] = n.ID, true
				if y.zone == "" {
					y.zone = n.AZ
				}
			}
		}
		needs := p.Offers[label].Needs
		isNew := y.places[i].Node == ""
		if isNew {
			y.places[i].Needs = needs
		}
		switch {
		case !single:
			y.all = Plus(y.all, needs)
			if isNew {
				y.needs = Plus(y.needs, needs)
			}
		case isNew:
			y.all, y.needs = needs, needs
		default:
			y.all = needs
		}
	}
	if y.zone == "" {
		y.zone = drawZone(p, r)
	}
	return y
}

// drawZone is the availability zone that a request's id draws; "" without zones.
func drawZone(p *Pool, r *zkmodel.Request) string {
	if len(p.Zones) == 0 {
		return ""
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.ID)) // never fails
	return p.Zones[int(h.Sum32()%uint32(len(p.Zones)))]
}

// notNow is the answer of pool p while it cannot launch; nil when it can.
func (a *assignment) notNow(p *Pool, r *zkmodel.Request, needs providers.Resources) *later {
	queued := r.Requestor != MinReadyRequestor
	no := func(cause Cause, format string, args ...any) *later {
		return &later{said: said{p, fmt.Sprintf(format, args...)}, cause: cause, queued: queued}
	}
	if p.Static {
		return &later{said: said{p, fmt.Sprintf("no node of pool %s of %s is free", p.Name, p.Provider)}, cause: Quota}
	}
	if p.Unavailable != "" {
		return no(Provider, "%s", p.Unavailable)
	}
	if first := a.closed(a.waits[p.ID]); first != nil {
		return no(Quota, "pool %s is full, and request %s comes first", p.Name, first.ID)
	}
	if p.sharesLimits() {
		if first := a.closed(a.shared[p.Provider]); first != nil {
			return no(Quota, "provider %s is full, and request %s comes first", p.Provider, first.ID)
		}
	}
	if !queued {
		if first := a.claimant(p, needs); first != nil {
			return no(Quota, "request %s can use the room of pool %s, and comes before stock", first.ID, p.Name)
		}
	}
	if why, lacks, cloud := a.shortage(p, needs); lacks {
		cause, why := a.blame(p, needs, why)
		l := no(cause, "%s", why)
		if l.shared = cloud; l.queued {
			l.needs = needs
			l.evict = a.evictions(p, func(left *usage) bool { _, lacks := left.shortage(p, needs); return lacks })
		}
		return l
	}
	if a.room[p.Provider] == 0 {
		return no(Busy, "provider %s is busy: max-concurrency", p.Provider)
	}
	return nil
}

// evictions are the idle nodes, the oldest first, without which it would not be full
// once all is gone that is on its way out; none when that is enough, or when all
// idle nodes together would not be. They are the pool's own, and after them those of the provider's
// other pools: where only the pool is full, these change nothing, and there are none.
func (a *assignment) evictions(p *Pool, full func(*usage) bool) []string {
	keys := []PoolKey{{p.Provider, p.Name}}
	for _, other := range a.Pools {
		if other.Provider == p.Provider && other != p {
			keys = append(keys, PoolKey{other.Provider, other.Name})
		}
	}
	if !slices.ContainsFunc(keys, a.ready.has) {
		return nil // as it is with most that wait
	}
	left := a.left()
	var evict []string
	for _, key := range keys {
		for n := range a.ready.idle(key) {
			if !full(left) {
				return evict
			}
			left.subtract(key, NodeResources(n, a.offers(key)))
			evict = append(evict, n.ID)
		}
	}
	if full(left) {
		return nil
	}
	return evict
}

// offers are the labels of one of our pools.
func (a *assignment) offers(key PoolKey) map[string]Offer {
	for _, p := range a.Pools {
		if p.Provider == key.Provider && p.Name == key.Pool {
			return p.Offers
		}
	}
	return nil
}
