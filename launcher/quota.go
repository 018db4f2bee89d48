package launcher

import (
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// usage counts what nodes take, by provider and by pool. Every record counts,
// whatever its state: while it is there, so may be the machine.
type usage struct {
	providers map[string]providers.Resources
	pools     map[poolKey]providers.Resources
}

// poolKey names a pool.
type poolKey struct{ provider, pool string }

func newUsage(nodes []*zkmodel.Node, pools []*Pool) *usage {
	u := &usage{providers: map[string]providers.Resources{}, pools: map[poolKey]providers.Resources{}}
	needs := map[poolKey]map[string]Offer{}
	for _, p := range pools {
		needs[poolKey{p.Provider, p.Name}] = p.Offers
	}
	var key poolKey // of the last node, and so of most that follow it
	var sum providers.Resources
	for _, n := range nodes {
		if n.Broken != nil {
			continue
		}
		if its := (poolKey{n.Provider, n.Pool}); sum == nil || its != key {
			key = its
			if sum = u.pools[key]; sum == nil {
				sum = providers.Resources{}
				u.pools[key] = sum
			}
		}
		plus(sum, nodeResources(n, needs[key]))
	}
	for key, amount := range u.pools {
		u.providers[key.provider] = plus(u.providers[key.provider], amount)
	}
	return u
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
	left := &usage{providers: map[string]providers.Resources{}, pools: map[poolKey]providers.Resources{}}
	for key, amount := range u.pools {
		left.add(key, amount)
	}
	for key, amount := range gone.pools {
		left.subtract(key, amount)
	}
	return left
}

// subtract takes amount from a pool and its provider.
func (u *usage) subtract(key poolKey, amount providers.Resources) {
	minus := make(providers.Resources, len(amount))
	for name, n := range amount {
		minus[name] = -n
	}
	u.add(key, minus)
}

// nodeResources is what a node takes: what its record says, else what its label
// would take today, else one instance.
func nodeResources(n *zkmodel.Node, offers map[string]Offer) providers.Resources {
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
func (u *usage) add(key poolKey, amount providers.Resources) {
	u.providers[key.provider] = plus(u.providers[key.provider], amount)
	u.pools[key] = plus(u.pools[key], amount)
}

// shortage says what is missing for need in pool p, or "".
func (u *usage) shortage(p *Pool, need providers.Resources) string {
	key := poolKey{p.Provider, p.Name}
	if s := short(u.pools[key], need, p.Limits); s != "" {
		return "pool " + p.Name + " is full: " + s
	}
	if s := short(u.providers[p.Provider], need, p.Cloud); s != "" {
		return "provider " + p.Provider + " is full: " + s
	}
	return ""
}

// cloudShort tells whether the limits of pool p's provider stand in the way of need.
func (u *usage) cloudShort(p *Pool, need providers.Resources) bool {
	return short(u.providers[p.Provider], need, p.Cloud) != ""
}

// neverFits says which limit is smaller than need, or "".
func neverFits(p *Pool, need providers.Resources) string {
	if s := short(nil, need, p.Limits); s != "" {
		return "exceeds the limits of pool " + p.Name + ": " + s
	}
	if s := short(nil, need, p.Cloud); s != "" {
		return "exceeds the limits of provider " + p.Provider + ": " + s
	}
	return ""
}

// short names the first resource, by name, of which used and need together
// exceed the limits.
func short(used, need, limits providers.Resources) string {
	first := ""
	for name, n := range need {
		limit, limited := limits[name]
		if limited && n > 0 && used[name]+n > limit && (first == "" || name < first) {
			first = name
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%s %d used, %d needed, limit %d", first, used[first], need[first], limits[first])
}

// plus adds amount to sum, which may be nil and is changed otherwise.
func plus(sum, amount providers.Resources) providers.Resources {
	if sum == nil {
		sum = make(providers.Resources, len(amount))
	}
	for name, n := range amount {
		sum[name] += n
	}
	return sum
}

// poolLimits are the limits that the configuration sets for a pool.
func poolLimits(p configs.Pool) providers.Resources {
	limits := providers.Resources{}
	for name, n := range map[string]int{
		providers.Instances: p.MaxServers,
		providers.Cores:     p.MaxCores,
		providers.RAM:       p.MaxRAM,
		providers.Volumes:   p.MaxVolumes,
		providers.VolumeGB:  p.MaxVolumeGB,
	} {
		if n >= 0 {
			limits[name] = n
		}
	}
	return limits
}
