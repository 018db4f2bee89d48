package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
	"poolkeeper/zkmodel"
)

// Tree is where nodes and requests are seen; *zkmodel.Mirror is one.
type Tree interface {
	Nodes() []*zkmodel.Node
	Requests() []*zkmodel.Request
	Components(kind string) []*zkmodel.Component
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
	// Clouds tells for each configured provider how it looks at the moment.
	Clouds map[string]func() Cloud
	// Known tells for each provider that is open what it knows of its cloud.
	Known func() map[string]registry.Knowledge
	// Decisions are the last ones over the requests.
	Decisions func() []schedule.Decision
	// Stocked are the labels that are kept in stock.
	Stocked []configs.Label
	// Backing tells of the backing nodes of each provider that has some.
	Backing map[string]func() Backing
	// Now is ZooKeeper's time.
	Now func() time.Time
}

// Backing are the nodes of others that nodes of a provider are slots on.
type Backing struct{ Nodes, Wanted, Slots, Used int }

// Cloud is how a provider looks.
type Cloud struct {
	Limits   providers.Resources                  // that the cloud has told; nil where it tells none
	Needs    map[string]map[string]schedule.Offer // what nodes take, by pool and label
	Failures int                                  // rounds of launches in a row that ended with a refusal
}

// gauges tell of nodes, requests and limits as they are when they are scraped. What is
// not there is told of as 0, for every state, so that no line in a graph breaks off
// and none stays behind. All launchers tell the same of the tree; of limits, each
// what its configuration says.
type gauges struct {
	source atomic.Pointer[Source]

	nodes, labels, requests, addressable, pools, tenants, usable, validation, canaries, elected, stuck *prometheus.Desc

	oldest, quota, taken, refusing, wanted, backing, slots *prometheus.Desc

	known  *registry.Figures
	series series // of the counters
}

func newGauges() *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("poolkeeper", "launcher", name), help, labels, nil)
	}
	g := &gauges{
		nodes:       desc("nodes", "Nodes in the tree.", "provider", "pool", "state"),
		labels:      desc("label_nodes", "Nodes in the tree, by label; one of several labels counts for each.", "label", "state"),
		requests:    desc("open_requests", "Node requests in the tree.", "state"),
		addressable: desc("addressable_requests", "Requests that wait and whose labels the pool has.", "provider", "pool"),
		pools:       desc("pool_limit", "Limits that the configuration sets for the pool.", "provider", "pool", "resource"),
		tenants:     desc("tenant_limit", "Limits of the tenant.", "tenant", "resource"),
		validation:  desc("validation_nodes", "Nodes in the tree that try an upload before it serves, and have no request.", "provider"),
		elected:     desc("elected", "1 at the one launcher whose figures of the tree are to count where all are summed, else 0."),
		stuck:       desc("stuck_nodes", "Nodes of the provider whose deletion is stuck.", "provider"),
		usable:      desc("provider_usable", "1 while this launcher can use the provider, 0 while it cannot; page and log say why.", "provider"),
		canaries:    desc("canary_nodes", "Nodes of a canary, and of the build before since it is one.", "provider", "image", "build", "result"),
		oldest:      desc("oldest_request_seconds", "Age of the oldest request that waits, by why this launcher leaves it waiting; 0 when none does.", "reason"),
		quota:       desc("quota_limit", "What the provider's cloud lets us use, where it tells.", "provider", "resource"),
		taken:       desc("quota_used", "What the nodes in the tree take of the provider, whatever their state.", "provider", "resource"),
		refusing:    desc("provider_refusals", "Rounds of launches in a row that ended with the cloud's refusal; 0 when it takes what it is asked for.", "provider"),
		backing:     desc("backing_nodes", "Nodes of other providers that nodes of the provider are slots on: there, or asked for.", "provider", "state"),
		slots:       desc("backing_slots", "Slots of backing nodes that are there: free, or used.", "provider", "state"),
		wanted:      desc("min_ready", "Ready nodes of the label that are to be kept in stock.", "label"),
	}
	g.known = registry.NewFigures(func() map[string]registry.Knowledge { return g.source.Load().Known() })
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.nodes, g.labels, g.requests, g.addressable, g.pools, g.tenants, g.usable, g.validation, g.canaries, g.elected, g.stuck,
		g.oldest, g.quota, g.taken, g.refusing, g.wanted, g.backing, g.slots,
	} {
		out <- d
	}
	g.known.Describe(out)
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	of := g.source.Load()
	if of == nil {
		return // nothing is seen yet
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
	for provider, n := range of.countNodesOf(func(n *zkmodel.Node) bool { return n.Validates != "" }) {
		tell(g.validation, n, provider)
	}
	for provider, n := range of.countNodesOf(func(n *zkmodel.Node) bool { return n.Stuck(of.Now()) }) {
		tell(g.stuck, n, provider)
	}
	of.eachTally(func(provider, image, build, result string, n int) {
		tell(g.canaries, n, provider, image, build, result)
	})
	g.collectMore(of, requests, tell)
	g.known.Collect(out)
	for tenant, limits := range pool.TenantLimits(of.Config) {
		for resource, limit := range limits {
			tell(g.tenants, limit, tenant, resource)
		}
	}
}

// collectMore tells of what waits, of the room in clouds, and of the stock.
func (g *gauges) collectMore(of *Source, requests []*zkmodel.Request, tell func(*prometheus.Desc, int, ...string)) {
	oldest, now := schedule.Oldest(requests, of.Decisions(), of.Tree.Components(zkmodel.KindPool)), of.Now()
	for _, cause := range schedule.Causes() {
		age := 0
		if since, waits := oldest[cause]; waits {
			age = int(max(now.Sub(since), 0).Seconds())
		}
		tell(g.oldest, age, string(cause))
	}
	offers := map[schedule.PoolKey]map[string]schedule.Offer{}
	for provider, look := range of.Clouds {
		cloud := look()
		for resource, limit := range cloud.Limits {
			tell(g.quota, limit, provider, resource)
		}
		for pool, labels := range cloud.Needs {
			offers[schedule.PoolKey{Provider: provider, Pool: pool}] = labels
		}
		tell(g.refusing, cloud.Failures, provider)
	}
	taken := schedule.Taken(of.Tree.Nodes(), offers)
	for provider := range of.Clouds {
		if taken[provider][providers.Instances] == 0 {
			tell(g.taken, 0, provider, providers.Instances)
		}
		for resource, amount := range taken[provider] {
			if resource != providers.Instances || amount > 0 {
				tell(g.taken, amount, provider, resource)
			}
		}
	}
	for provider, look := range of.Backing {
		b := look()
		tell(g.backing, b.Nodes, provider, "there")
		tell(g.backing, b.Wanted, provider, "wanted")
		tell(g.slots, b.Used, provider, "used")
		tell(g.slots, b.Slots-b.Used, provider, "free")
	}
	for _, label := range of.Stocked {
		tell(g.wanted, label.MinReady, label.Name)
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

// countNodesOf counts nodes by provider; every provider of ours is in the result.
func (of *Source) countNodesOf(is func(*zkmodel.Node) bool) map[string]int {
	counts := map[string]int{}
	for name := range of.Usable {
		counts[name] = 0
	}
	for _, n := range of.Tree.Nodes() {
		if n.Broken == nil && is(n) {
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
