package schedule

import (
	"cmp"
	"fmt"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// usage counts what nodes take, by provider and by pool. Every record counts,
// whatever its state: while it is there, so may be the machine.
type usage struct {
	providers map[string]providers.Resources
	pools     map[PoolKey]providers.Resources
}

// PoolKey names a pool.
type PoolKey struct{ Provider, Pool string }

func newUsage(nodes []*zkmodel.Node, pools []*Pool) *usage {
	u := &usage{providers: map[string]providers.Resources{}, pools: map[PoolKey]providers.Resources{}}
	needs := map[PoolKey]map[string]Offer{}
	for _, p := range pools {
		needs[PoolKey{p.Provider, p.Name}] = p.Offers
	}
	var key PoolKey // of the last node, and so of most that follow it
	var sum providers.Resources
	unknown := 0
	for _, n := range nodes {
		if n.Broken != nil {
			if n.Unknown() {
				unknown++
			}
			continue
		}
		if its := (PoolKey{n.Provider, n.Pool}); sum == nil || its != key {
			key = its
			if sum = u.pools[key]; sum == nil {
				sum = providers.Resources{}
				u.pools[key] = sum
			}
		}
		Plus(sum, NodeResources(n, needs[key]))
	}
	for key, amount := range u.pools {
		u.providers[key.Provider] = Plus(u.providers[key.Provider], amount)
	}
	if unknown > 0 {
		u.addUnknown(pools, unknown)
	}
	return u
}

// addUnknown counts nodes of which nobody can tell whose they are. Each takes in every
// pool and at every provider what the largest of its labels takes.
func (u *usage) addUnknown(pools []*Pool, count int) {
	most := map[string]providers.Resources{} // by provider
	for _, p := range pools {
		need := providers.Resources{providers.Instances: 1}
		for _, offer := range p.Offers {
			raise(need, offer.Needs)
		}
		if most[p.Provider] == nil {
			most[p.Provider] = providers.Resources{}
		}
		raise(most[p.Provider], need)
		key := PoolKey{p.Provider, p.Name}
		u.pools[key] = Plus(u.pools[key], times(need, count))
	}
	for provider, need := range most {
		u.providers[provider] = Plus(u.providers[provider], times(need, count))
	}
}

// raise makes each amount in sum at least as large as the other's.
func raise(sum, other providers.Resources) {
	for name, n := range other {
		sum[name] = max(sum[name], n)
	}
}

// times is the amount of count equal things.
func times(amount providers.Resources, count int) providers.Resources {
	product := make(providers.Resources, len(amount))
	for name, n := range amount {
		product[name] = n * count
	}
	return product
}

// leavers are the nodes that will soon be gone without our doing anything more.
func leavers(snap *Snapshot) []*zkmodel.Node {
	var list []*zkmodel.Node
	for _, n := range snap.Nodes {
		switch n.State {
		case zkmodel.NodeUsed, zkmodel.NodeDeleting, zkmodel.NodeDeleted, zkmodel.NodeFailed, zkmodel.NodeAborted:
			list = append(list, n)
		default:
			if snap.Evicted[n.ID] {
				list = append(list, n)
			}
		}
	}
	return list
}

// without is a copy that lacks what another counts.
func (u *usage) without(gone *usage) *usage {
	left := &usage{providers: map[string]providers.Resources{}, pools: map[PoolKey]providers.Resources{}}
	for key, amount := range u.pools {
		left.add(key, amount)
	}
	for key, amount := range gone.pools {
		left.subtract(key, amount)
	}
	return left
}

// subtract takes amount from a pool and its provider.
func (u *usage) subtract(key PoolKey, amount providers.Resources) {
	minus := make(providers.Resources, len(amount))
	for name, n := range amount {
		minus[name] = -n
	}
	u.add(key, minus)
}

// NodeResources is what a node takes: what its record says, else what its label
// would take today, else one instance.
func NodeResources(n *zkmodel.Node, offers map[string]Offer) providers.Resources {
	if len(n.Resources) > 0 {
		return n.Resources
	}
	for _, label := range n.Type {
		if o, ok := offers[label]; ok && o.Needs != nil {
			return o.Needs
		}
	}
	return providers.Resources{providers.Instances: 1}
}

// add counts amount towards a pool and its provider.
func (u *usage) add(key PoolKey, amount providers.Resources) {
	u.providers[key.Provider] = Plus(u.providers[key.Provider], amount)
	u.pools[key] = Plus(u.pools[key], amount)
}

// shortage says what is missing for need in pool p, and whether something is.
func (u *usage) shortage(p *Pool, need providers.Resources) (why string, lacks bool) {
	if s, lacks := short(u.pools[PoolKey{p.Provider, p.Name}], need, p.Limits); lacks {
		return "pool " + p.Name + " is full: " + s, true
	}
	if s, lacks := short(u.providers[p.Provider], need, p.Cloud); lacks {
		return "provider " + p.Provider + " is full: " + s, true
	}
	return "", false
}

// phantoms are the records of a snapshot that count as nodes although nothing shows that they
// have a server: those that cannot be read, and those without a server whose deletion is stuck. Those whose server
// the cloud fails to delete are among them.
type phantoms struct {
	used      *usage
	unread    []string // ids
	ending    int
	deletes   string            // why deletions fail
	undeleted map[string]string // one of the last, by provider
}

func newPhantoms(s *Snapshot) *phantoms {
	p := &phantoms{undeleted: map[string]string{}}
	var nodes []*zkmodel.Node
	for _, n := range s.Nodes {
		switch {
		case n.Unknown():
			p.unread = append(p.unread, n.ID)
		case n.Serverless() && n.Stuck(s.Now.Add(s.Lag)):
			p.ending++
			p.deletes = cmp.Or(p.deletes, n.DeleteError, "no answer")
		case n.Undeleted() != "":
			p.undeleted[n.Provider] = cmp.Or(p.undeleted[n.Provider], n.Undeleted())
		default:
			continue
		}
		nodes = append(nodes, n)
	}
	if len(nodes) > 0 {
		p.used = newUsage(nodes, s.Pools)
	}
	return p
}

// blame returns why a pool lacks room: why, unless it has room but for phantoms.
func (a *assignment) blame(p *Pool, need providers.Resources, why string) (Cause, string) {
	if _, lacks := a.used.shortage(p, need); !lacks || a.phantoms.used == nil {
		return Quota, why
	}
	if _, lacks := a.used.without(a.phantoms.used).shortage(p, need); lacks {
		return Quota, why
	}
	if len(a.phantoms.unread) > 0 {
		return Quota, zkmodel.UnreadNodes(a.phantoms.unread)
	}
	if text := a.phantoms.undeleted[p.Provider]; text != "" {
		return Provider, "provider " + p.Provider + ": " + text
	}
	return Provider, fmt.Sprintf("provider %s does not confirm the deletion of %d nodes: %s", p.Provider, a.phantoms.ending, a.phantoms.deletes)
}

// cloudShort reports whether the limits of pool p's provider stand in the way of need.
func (u *usage) cloudShort(p *Pool, need providers.Resources) bool {
	_, lacks := short(u.providers[p.Provider], need, p.Cloud)
	return lacks
}

// neverFits says which limit is smaller than need, and whether one is.
func neverFits(p *Pool, need providers.Resources) (why string, exceeds bool) {
	if s, exceeds := short(nil, need, p.Limits); exceeds {
		return "exceeds the limits of pool " + p.Name + ": " + s, true
	}
	if s, exceeds := short(nil, need, p.Cloud); exceeds {
		return "exceeds the limits of provider " + p.Provider + ": " + s, true
	}
	return "", false
}

// short names the first resource, by name, of which used and need together exceed the
// limits, and reports whether there is one.
func short(used, need, limits providers.Resources) (what string, lacks bool) {
	first := ""
	for name, n := range need {
		limit, limited := limits[name]
		if limited && n > 0 && used[name]+n > limit && (!lacks || name < first) {
			first, lacks = name, true
		}
	}
	if !lacks {
		return "", false
	}
	return fmt.Sprintf("%s %d used, %d needed, limit %d", first, used[first], need[first], limits[first]), true
}

// Plus adds amount to sum, which may be nil and is changed otherwise.
func Plus(sum, amount providers.Resources) providers.Resources {
	if sum == nil {
		sum = make(providers.Resources, len(amount))
	}
	for name, n := range amount {
		sum[name] += n
	}
	return sum
}

// Taken is what nodes take of each provider, whatever their state. offers are the labels
// of our pools, by which a node counts whose record does not say what it takes.
func Taken(nodes []*zkmodel.Node, offers map[PoolKey]map[string]Offer) map[string]map[string]int {
	taken := map[string]map[string]int{}
	for _, n := range nodes {
		if n.Broken != nil {
			continue
		}
		sum := taken[n.Provider]
		if sum == nil {
			sum = map[string]int{}
			taken[n.Provider] = sum
		}
		for resource, amount := range NodeResources(n, offers[PoolKey{n.Provider, n.Pool}]) {
			sum[resource] += amount
		}
	}
	return taken
}
