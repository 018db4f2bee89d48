package launcher

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// gauges tell of nodes, requests and limits as they are when somebody asks. What is
// not there is told of as 0, for every state, so that no line in a graph breaks off
// and none stays behind. All launchers tell the same of the tree; of limits, each
// what its configuration says.
type gauges struct {
	launcher atomic.Pointer[Launcher] // the one whose configuration counts

	nodes, labels, requests, addressable, pools, tenants *prometheus.Desc
}

func newGauges() *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("poolkeeper", "launcher", name), help, labels, nil)
	}
	return &gauges{
		nodes:       desc("nodes", "Nodes in the tree.", "provider", "pool", "state"),
		labels:      desc("label_nodes", "Nodes in the tree, by label; one of several labels counts for each.", "label", "state"),
		requests:    desc("open_requests", "Node requests in the tree.", "state"),
		addressable: desc("addressable_requests", "Requests that wait and whose labels the pool has.", "provider", "pool"),
		pools:       desc("pool_limit", "Limits that the configuration sets for the pool.", "provider", "pool", "resource"),
		tenants:     desc("tenant_limit", "Limits of the tenant.", "tenant", "resource"),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, out) }

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	l := g.launcher.Load()
	if l == nil { // described before it is used: one of each
		tell(g.nodes, 0, "", "", "")
		tell(g.labels, 0, "", "")
		tell(g.requests, 0, "")
		tell(g.addressable, 0, "", "")
		tell(g.pools, 0, "", "", "")
		tell(g.tenants, 0, "", "")
		return
	}
	for key, n := range l.countNodes() {
		tell(g.nodes, n, key.provider, key.pool, string(key.state))
	}
	for key, n := range l.countLabels() {
		tell(g.labels, n, key.label, string(key.state))
	}
	requests := l.mirror.Requests()
	for state, n := range l.countRequests(requests) {
		tell(g.requests, n, string(state))
	}
	for _, p := range l.pools {
		tell(g.addressable, p.addressable(requests), p.provider.Name, p.config.Name)
		for resource, limit := range poolLimits(p.config) {
			tell(g.pools, limit, p.provider.Name, p.config.Name, resource)
		}
	}
	for tenant, limits := range tenantLimits(l.cfg) {
		for resource, limit := range limits {
			tell(g.tenants, limit, tenant, resource)
		}
	}
}

// nodeCount and labelCount are what nodes are counted by.
type (
	nodeCount struct {
		provider, pool string
		state          zkmodel.NodeState
	}
	labelCount struct {
		label string
		state zkmodel.NodeState
	}
)

// countNodes counts all nodes; every state of our pools is there.
func (l *Launcher) countNodes() map[nodeCount]int {
	counts := map[nodeCount]int{}
	for _, p := range l.pools {
		for state := range l.table.nodes {
			counts[nodeCount{p.provider.Name, p.config.Name, state}] = 0
		}
	}
	for _, n := range l.mirror.Nodes() {
		if n.Broken == nil {
			counts[nodeCount{n.Provider, n.Pool, n.State}]++
		}
	}
	return counts
}

// countLabels counts all nodes by label; every state of our labels is there.
func (l *Launcher) countLabels() map[labelCount]int {
	counts := map[labelCount]int{}
	for _, label := range l.cfg.Labels {
		for state := range l.table.nodes {
			counts[labelCount{label.Name, state}] = 0
		}
	}
	for _, n := range l.mirror.Nodes() {
		for _, label := range n.Type {
			counts[labelCount{label, n.State}]++
		}
	}
	return counts
}

// countRequests counts requests; every state is there.
func (l *Launcher) countRequests(requests []*zkmodel.Request) map[zkmodel.RequestState]int {
	counts := map[zkmodel.RequestState]int{}
	for state := range l.table.requests {
		counts[state] = 0
	}
	for _, r := range requests {
		if r.Broken == nil {
			counts[r.State]++
		}
	}
	return counts
}

// addressable counts the requests that wait and whose labels are all of this pool.
func (p *pool) addressable(requests []*zkmodel.Request) int {
	count := 0
	for _, r := range requests {
		if r.State == zkmodel.RequestRequested && p.offers(r.NodeTypes) {
			count++
		}
	}
	return count
}

// offers tells whether the pool has all labels.
func (p *pool) offers(labels []string) bool {
	for _, label := range labels {
		if _, has := p.labels[label]; !has {
			return false
		}
	}
	return len(labels) > 0
}

// zero makes the counters of our providers known before they count.
func (m *metrics) zero(cfg *configs.Config) {
	for _, p := range cfg.Providers {
		m.deletes.WithLabelValues(p.Name)
		m.leaks.WithLabelValues(p.Name)
		for _, section := range p.Pools {
			m.requests.WithLabelValues(p.Name, section.Name, "fulfilled")
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(nil))
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(providers.ErrQuota))
		}
	}
}
