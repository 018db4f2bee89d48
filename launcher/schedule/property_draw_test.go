package schedule

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// drawSizes makes labels a, b and c of 1, 2 and 4 instances.
func drawSizes() map[string]Offer {
	offers := map[string]Offer{}
	for label, size := range map[string]int{"a": 1, "b": 2, "c": 4} {
		offers[label] = Offer{Ready: true, Needs: providers.Resources{
			providers.Instances: size, providers.Cores: 3 - size/2, providers.RAM: size * 100,
		}}
	}
	return offers
}

// drawLimits limits some of the resources, or none.
func drawLimits(t *rapid.T, what string) providers.Resources {
	limits := providers.Resources{}
	units := map[string]int{providers.Instances: 1, providers.Cores: 1, providers.RAM: 100}
	for _, name := range slices.Sorted(maps.Keys(units)) { // drawn in the same order when repeated
		if n := rapid.IntRange(0, 16).Draw(t, what+" "+name); n > 0 {
			limits[name] = n * units[name]
		}
	}
	return limits
}

// drawPool makes a pool of a provider, whose limits are given.
func drawPool(t *rapid.T, provider, name string, cloud providers.Resources) *Pool {
	p := &Pool{
		ID: "host-" + provider + "-" + name, Provider: provider, Name: name, Cloud: cloud, Offers: drawSizes(),
		Priority:   rapid.SampledFrom([]int{10, 100}).Draw(t, "priority"),
		Limits:     drawLimits(t, "limit"),
		Room:       rapid.SampledFrom([]int{-1, -1, 0, 1, 5}).Draw(t, "room"),
		HoldsQuota: rapid.IntRange(0, 5).Draw(t, "counted") > 0,
		Zones:      rapid.SampledFrom([][]string{nil, {"z1"}, {"z1", "z2"}}).Draw(t, "zones"),
	}
	if rapid.IntRange(0, 3).Draw(t, "lacks a label") == 0 {
		delete(p.Offers, "c")
	}
	return p
}

// drawSnapshot makes a situation within the quota: two pools of one provider and
// one of another, with nodes, a tenant with a limit, and requests that wait.
func drawSnapshot(t *rapid.T) *Snapshot {
	cloud := drawLimits(t, "cloud")
	s := &Snapshot{
		Now: time.Unix(100_000, 0), Grace: time.Second,
		Pools:   []*Pool{drawPool(t, "one", "main", cloud), drawPool(t, "one", "more", cloud), drawPool(t, "two", "main", drawLimits(t, "cloud"))},
		Tenants: map[string]providers.Resources{"red": {providers.Instances: rapid.IntRange(1, 10).Draw(t, "red")}},
	}
	s.Pools[1].Room = s.Pools[0].Room // of one provider
	drawNodes(t, s)
	for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
		age := time.Duration(rapid.IntRange(0, 1000).Draw(t, "age")) * time.Second
		s.Requests = append(s.Requests, &zkmodel.Request{
			ID:    fmt.Sprintf("%d00-%010d", rapid.IntRange(1, 3).Draw(t, "priority"), i),
			State: zkmodel.RequestRequested, NodeTypes: drawLabels().Draw(t, "labels"),
			Provider: rapid.SampledFrom([]string{"", "", "one", "two", "three"}).Draw(t, "provider"),
			Reuse:    rapid.Bool().Draw(t, "reuse"), RelativePriority: rapid.IntRange(0, 2).Draw(t, "relative"),
			TenantName: drawTenant(t), Stat: recipe.Stat{Ctime: s.Now.Add(-age)},
		})
	}
	return s
}

// drawNodes adds nodes as long as they fit.
func drawNodes(t *rapid.T, s *Snapshot) {
	u := newUsage(nil, s.Pools)
	for i := range rapid.IntRange(0, 10).Draw(t, "nodes") {
		pool := rapid.SampledFrom(s.Pools).Draw(t, "pool")
		label := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "label")
		needs := pool.Offers[label].Needs
		n := &zkmodel.Node{
			ID: fmt.Sprintf("%010d", i), Provider: pool.Provider, Pool: pool.Name, Type: zkmodel.Strings{label},
			Resources: needs, AZ: rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"),
			State: rapid.SampledFrom([]zkmodel.NodeState{
				zkmodel.NodeReady, zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.NodeDeleting, zkmodel.NodeBuilding,
			}).Draw(t, "state"),
			Locked: rapid.IntRange(0, 3).Draw(t, "locked") == 0,
		}
		if rapid.IntRange(0, 3).Draw(t, "allocated") == 0 {
			n.AllocatedTo, n.TenantName = "200-9999999999", drawTenant(t)
		}
		_, lacks := u.shortage(pool, needs)
		used := tenantUsage(&Snapshot{Nodes: append(s.Nodes, n), Tenants: s.Tenants})["red"][providers.Instances]
		if needs == nil || lacks || used > s.Tenants["red"][providers.Instances] {
			continue
		}
		u.add(PoolKey{pool.Provider, pool.Name}, needs)
		s.Nodes = append(s.Nodes, n)
	}
}

// drawLabels draws what a request asks for.
func drawLabels() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3)
}

// drawTenant draws one with a limit, or one without.
func drawTenant(t *rapid.T) string {
	return rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "tenant")
}
