package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/zkmodel"
)

// Tree is where nodes and requests are seen; *zkmodel.Mirror is one.
type Tree interface {
	Nodes() []*zkmodel.Node
	Requests() []*zkmodel.Request
}

// Source is the launcher whose configuration counts.
type Source struct {
	Config *configs.Config
	Pools  []*pool.Pool
	Tree   Tree
	// Image is one image as the tree shows it; it is asked for those that have a canary.
	Image func(name string) *zkmodel.Image
	// Complete is nil when the tree shows all nodes.
	Complete func() error
	// Usable tells for each configured provider whether it can be used at the moment.
	Usable map[string]func() bool
	// Elected reports whether this launcher leads the election of those that tidy up: of one
	// of all launchers it is true.
	Elected func() bool
}

// gauges tell of nodes, requests and limits as they are when they are scraped. What is
// not there is told of as 0, for every state, so that no line in a graph breaks off
// and none stays behind. All launchers tell the same of the tree; of limits, each
// what its configuration says.
type gauges struct {
	source atomic.Pointer[Source]

	nodes, labels, requests, addressable, pools, tenants, usable, validation, canaries, elected *prometheus.Desc

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
		validation:  desc("validation_nodes", "Nodes in the tree that try an upload before it serves, and have no request.", "provider"),
		elected:     desc("elected", "1 at the one launcher whose figures of the tree are to count where all are summed, else 0."),
		usable:      desc("provider_usable", "1 while this launcher can use the provider, 0 while it cannot; page and log say why.", "provider"),
		canaries:    desc("canary_nodes", "Nodes of a canary, and of the build before since it is one.", "provider", "image", "build", "result"),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, out) }

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	of := g.source.Load()
	if of == nil { // described before it is used: one of each
		tell(g.nodes, 0, "", "", "")
		tell(g.labels, 0, "", "")
		tell(g.requests, 0, "")
		tell(g.addressable, 0, "", "")
		tell(g.pools, 0, "", "", "")
		tell(g.tenants, 0, "", "")
		tell(g.usable, 0, "")
		tell(g.validation, 0, "")
		tell(g.canaries, 0, "", "", "", "")
		tell(g.elected, 0)
		return
	}
	elected := 0
	if of.Elected() {
		elected = 1
	}
	tell(g.elected, elected)
	nodes := of.countNodes()
	if of.Complete() == nil {
		g.series.forget(of, nodes)
	}
	for key, n := range nodes {
		tell(g.nodes, n, key.provider, key.pool, string(key.state))
	}
	for key, n := range of.countLabels() {
		tell(g.labels, n, key.label, string(key.state))
	}
	requests := of.Tree.Requests()
	for state, n := range countRequests(requests) {
		tell(g.requests, n, string(state))
	}
	for _, p := range of.Pools {
		tell(g.addressable, p.Addressable(requests), p.Provider.Name, p.Section.Name)
		for resource, limit := range p.Limits() {
			tell(g.pools, limit, p.Provider.Name, p.Section.Name, resource)
		}
	}
	for name, usable := range of.Usable {
		value := 0
		if usable() {
			value = 1
		}
		tell(g.usable, value, name)
	}
	for provider, n := range of.countTried() {
		tell(g.validation, n, provider)
	}
	of.eachTally(func(provider, image, build, result string, n int) {
		tell(g.canaries, n, provider, image, build, result)
	})
	for tenant, limits := range pool.TenantLimits(of.Config) {
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

// eachTally goes through what is counted of the canaries that run.
func (of *Source) eachTally(tell func(provider, image, build, result string, n int)) {
	for _, d := range of.Config.DiskImages {
		if d.Canary == nil || of.Image == nil {
			continue
		}
		for _, c := range of.Image(d.Name).Canaries {
			if c.Trial == nil {
				continue
			}
			canary, previous := c.Tallies()
			for build, t := range map[string]zkmodel.Tally{"canary": canary, "previous": previous} {
				for result, n := range map[string]int{"begun": t.Nodes, "failed": t.Failed, "no-keys": t.Scans, "short": t.Short, "served": t.Served} {
					tell(c.Provider, c.Image, build, result, n)
				}
			}
		}
	}
}

// countNodes counts all nodes; every state of our pools is there.
func (of *Source) countNodes() map[nodeCount]int {
	counts := map[nodeCount]int{}
	for _, p := range of.Pools {
		for _, state := range zkmodel.NodeStates() {
			counts[nodeCount{p.Provider.Name, p.Section.Name, state}] = 0
		}
	}
	for _, n := range of.Tree.Nodes() {
		if n.Broken == nil {
			counts[nodeCount{n.Provider, n.Pool, n.State}]++
		}
	}
	return counts
}

// countTried counts the nodes that try an upload; every provider of ours is there.
func (of *Source) countTried() map[string]int {
	counts := map[string]int{}
	for name := range of.Usable {
		counts[name] = 0
	}
	for _, n := range of.Tree.Nodes() {
		if n.Broken == nil && n.Validates != "" {
			counts[n.Provider]++
		}
	}
	return counts
}

// countLabels counts all nodes by label; every state of our labels is there.
func (of *Source) countLabels() map[labelCount]int {
	counts := map[labelCount]int{}
	for _, label := range of.Config.Labels {
		for _, state := range zkmodel.NodeStates() {
			counts[labelCount{label.Name, state}] = 0
		}
	}
	for _, n := range of.Tree.Nodes() {
		for _, label := range n.Type {
			counts[labelCount{label, n.State}]++
		}
	}
	return counts
}

// countRequests counts requests; every state is there.
func countRequests(requests []*zkmodel.Request) map[zkmodel.RequestState]int {
	counts := map[zkmodel.RequestState]int{}
	for _, state := range zkmodel.RequestStates() {
		counts[state] = 0
	}
	for _, r := range requests {
		if r.Broken == nil {
			counts[r.State]++
		}
	}
	return counts
}
