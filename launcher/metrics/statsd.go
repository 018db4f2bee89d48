package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/statsd"
	"poolkeeper/launcher/pool"
	"poolkeeper/zkmodel"
)

// statsEvery is how often what there is is told: as often as statsd hands figures on, by default.
const statsEvery = 10 * time.Second

// Tried counts an attempt to launch a node in a pool, and tells statsd of it.
//
// docs/metrics.md has the names.
func (m *Metrics) Tried(p *pool.Pool, n *zkmodel.Node, requestor string, ended error, took time.Duration) {
	m.launch(p, ended, took)
	result := launchResult(ended)
	keys := [][]string{{"nodepool.launch.provider", p.Provider.Name, result}, {"nodepool.launch", result}}
	if n.AZ != "" {
		keys = append(keys, []string{"nodepool.launch.provider", p.Provider.Name, n.AZ, result})
	}
	if requestor != "" {
		keys = append(keys, []string{"nodepool.launch.requestor", statsd.Part(requestor), result})
	}
	for _, key := range keys {
		m.stats.Timing(took, key...)
		m.stats.Count(key...)
	}
}

// RunStats tells statsd of what there is, until ctx ends.
func (m *Metrics) RunStats(ctx context.Context) {
	for m.stats.On() && clock.Sleep(ctx, statsEvery) == nil {
		if of := m.now.source.Load(); of != nil {
			m.tellStats(of)
		}
	}
}

// tellStats tells of limits, of what pools could serve and, for all, of the nodes: that is
// one launcher's.
func (m *Metrics) tellStats(of *Source) {
	for _, p := range of.Config.Providers {
		servers := 0
		for _, section := range p.Pools {
			servers += max(section.MaxServers, 0) // below 0 is without limit
		}
		if servers > 0 {
			m.stats.Gauge(int64(servers), "nodepool.provider", p.Name, "max_servers")
		}
	}
	for tenant, limits := range pool.TenantLimits(of.Config) {
		for resource, limit := range limits {
			m.stats.Gauge(int64(limit), "nodepool.tenant_limits", statsd.Part(tenant), statsd.Part(resource))
		}
	}
	if !of.Elected() || of.Complete() != nil {
		return
	}
	pools := of.Tree.Components(zkmodel.KindPool)
	counts := map[string]int64{}
	for _, state := range zkmodel.NodeStates() {
		counts["nodepool.nodes."+string(state)] = 0
		for _, p := range pools {
			counts["nodepool.provider."+p.ProviderName+".nodes."+string(state)] = 0
			for _, label := range p.SupportedLabels {
				counts["nodepool.label."+label+".nodes."+string(state)] = 0
			}
		}
	}
	for _, n := range of.Tree.Nodes() {
		if n.Broken != nil {
			continue
		}
		counts["nodepool.nodes."+string(n.State)]++
		counts["nodepool.provider."+n.Provider+".nodes."+string(n.State)]++
		for _, label := range n.Type {
			counts["nodepool.label."+label+".nodes."+string(n.State)]++
		}
	}
	requests := of.Tree.Requests()
	for _, p := range pools {
		if p.Broken != nil || p.PoolName == "" {
			continue
		}
		key := "nodepool.provider." + p.ProviderName + ".pool." + p.PoolName + ".addressable_requests"
		addressable := int64(0) // whatever their state: Nodepool counts them so
		for _, r := range requests {
			if r.Broken == nil && p.Has(r.NodeTypes) {
				addressable++
			}
		}
		counts[key] = max(counts[key], addressable) // of several launchers
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		m.stats.Gauge(counts[key], key)
	}
}
