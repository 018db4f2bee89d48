package launcher

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// gauges tell of nodes, requests and limits as they are when somebody asks. What is
// not there is told of as 0, for every state, so that no line in a graph breaks off
// and none stays behind. All launchers tell the same of the tree; of limits, each
// what its configuration says.
type gauges struct {
	launcher atomic.Pointer[Launcher] // the one whose configuration counts

	nodes, labels, requests, addressable, pools, tenants, usable *prometheus.Desc

	series series // of the counters
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
		usable:      desc("provider_usable", "1 while this launcher can use the provider, 0 while it cannot; page and log say why.", "provider"),
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
		tell(g.usable, 0, "")
		return
	}
	nodes := l.countNodes()
	if l.Ready() == nil { // it sees all nodes
		g.series.forget(l, nodes)
	}
	for key, n := range nodes {
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
		tell(g.addressable, p.Addressable(requests), p.Provider.Name, p.Section.Name)
		for resource, limit := range p.Limits() {
			tell(g.pools, limit, p.Provider.Name, p.Section.Name, resource)
		}
	}
	for name, c := range l.clouds {
		usable := 0
		if view := c.View(); view.Unavailable == "" && view.Trouble == "" {
			usable = 1
		}
		tell(g.usable, usable, name)
	}
	for tenant, limits := range pool.TenantLimits(l.cfg) {
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
		for state := range l.duties.Nodes {
			counts[nodeCount{p.Provider.Name, p.Section.Name, state}] = 0
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
		for state := range l.duties.Nodes {
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
	for state := range l.duties.Requests {
		counts[state] = 0
	}
	for _, r := range requests {
		if r.Broken == nil {
			counts[r.State]++
		}
	}
	return counts
}

// zero makes the counters of our providers known before they count.
func (m *metrics) zero(cfg *configs.Config) {
	for _, p := range cfg.Providers {
		m.now.series.note(p.Name, "")
		m.deletes.WithLabelValues(p.Name)
		m.leaks.WithLabelValues(p.Name)
		for _, section := range p.Pools {
			m.now.series.note(p.Name, section.Name)
			m.requests.WithLabelValues(p.Name, section.Name, "fulfilled")
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(nil))
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(providers.ErrQuota))
		}
	}
}
