package overview

import (
	"cmp"
	"maps"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// The resources that pools have limits of, as providers name them.
const (
	instances = "instances"
	cores     = "cores"
	ram       = "ram" // MiB
	volumes   = "volumes"
	gigabytes = "volume-gb"
)

// Use is how much of a resource nodes take.
type Use struct {
	Used  int  `json:"used"`
	Limit *int `json:"limit,omitempty"` // none where there is none
}

// full reports whether nothing more fits.
func (u Use) full() bool { return u.Limit != nil && u.Used >= *u.Limit }

// Share is the used part of the limit, in percent; 0 without a limit.
func (u Use) Share() int {
	switch {
	case u.Limit == nil:
		return 0
	case *u.Limit <= 0:
		return 100
	}
	return 100 * u.Used / *u.Limit
}

// Capacity is what a provider, or a pool of it, has and uses.
type Capacity struct {
	Provider string         `json:"provider"`
	Pool     string         `json:"pool,omitempty"`
	Uses     map[string]Use `json:"resources"`
	Nodes    map[string]int `json:"nodes"` // by state
	// Launchers are how many serve the pool; Trouble is why none can use its provider.
	Launchers int    `json:"launchers"`
	Trouble   string `json:"trouble,omitempty"`
	Disabled  bool   `json:"disabled,omitempty"` // by max-servers: 0

	// ending are what nodes without a server still count for, and whyEnding is what the cloud
	// says about their deletion.
	ending    map[string]int
	whyEnding string
	// undeleted is what nodes take whose servers the cloud fails to delete, and whyUndeleted names one of them.
	undeleted    map[string]int
	whyUndeleted string
}

// Fullest is the resource of which the least is left, and how much of it is used.
func (c *Capacity) Fullest() (resource string, use Use) {
	resource, use = instances, c.Uses[instances]
	for _, name := range slices.Sorted(maps.Keys(c.Uses)) {
		if u := c.Uses[name]; u.Share() > use.Share() {
			resource, use = name, u
		}
	}
	return resource, use
}

// full reports whether no node fits any more.
func (c *Capacity) full() bool { return c.fullWithout(nil) }

// fullWithout reports whether no node fits where so much less is taken.
func (c *Capacity) fullWithout(less map[string]int) bool {
	for name, use := range c.Uses {
		use.Used -= less[name]
		if use.full() {
			return true
		}
	}
	return false
}

// fullWith reports whether no node fits where so much more is taken.
func (c *Capacity) fullWith(more map[string]int) bool {
	for name, use := range c.Uses {
		use.Used += more[name]
		if more[name] > 0 && use.full() {
			return true
		}
	}
	return false
}

// capacities are all of them, and the node records that cannot be read: each counts everywhere.
type capacities struct {
	providers, pools []Capacity
	unread           []string
}

// verdict says whether a pool has room, as far as records tell.
func (c *capacities) verdict(p *zkmodel.Component) (Verdict, string) {
	provider, pool := c.of(p.ProviderName, p.PoolName)
	for _, place := range []*Capacity{pool, provider} {
		if place != nil && place.full() && !place.fullWithout(place.undeleted) {
			return Undeleted, place.whyUndeleted
		}
	}
	if pool != nil && pool.full() {
		return PoolFull, "the pool: " + pool.fullText()
	}
	if provider != nil && provider.full() {
		return PoolFull, "the provider: " + provider.fullText()
	}
	for _, place := range []*Capacity{pool, provider} {
		switch unread := map[string]int{instances: len(c.unread)}; {
		case place == nil:
		case place.fullWith(unread):
			return PoolFull, zkmodel.UnreadNodes(c.unread)
		case place.fullWith(place.ending):
			return Undeleted, listing.Words(": ", "the cloud does not confirm the deletion of its nodes", place.whyEnding)
		}
	}
	return MayServe, ""
}

// of finds a provider and a pool of it; nil for what is not configured.
func (c *capacities) of(provider, pool string) (p, q *Capacity) {
	for n := range c.providers {
		if c.providers[n].Provider == provider {
			p = &c.providers[n]
		}
	}
	for n := range c.pools {
		if c.pools[n].Provider == provider && c.pools[n].Pool == pool {
			q = &c.pools[n]
		}
	}
	return p, q
}

// capacity counts what nodes take. Nodes without a server are counted by themselves.
func (t *Tree) capacity(cfg *configs.Config) *capacities {
	all := &capacities{providers: []Capacity{}, pools: []Capacity{}}
	nodes := t.takings()
	for _, n := range t.Nodes {
		if n.Unknown() {
			all.unread = append(all.unread, n.ID)
		}
	}
	for n := range cfg.Providers {
		provider := &cfg.Providers[n]
		of := newCapacity(provider.Name, "", t.Limits[provider.Name])
		for m := range provider.Pools {
			pool := &provider.Pools[m]
			limits := map[string]int{}
			for name, limit := range map[string]int{
				instances: pool.MaxServers, cores: pool.MaxCores, ram: pool.MaxRAM, volumes: pool.MaxVolumes, gigabytes: pool.MaxVolumeGB,
			} {
				if limit >= 0 && (limit > 0 || name == instances) {
					limits[name] = limit
				}
			}
			if len(pool.Nodes) > 0 { // static machines are their own limit
				delete(limits, instances)
			}
			one := newCapacity(provider.Name, pool.Name, limits)
			one.Disabled = pool.MaxServers == 0 && len(pool.Nodes) == 0
			t.serving(&one)
			if takes := nodes[inPool{provider.Name, pool.Name}]; takes != nil {
				one.count(takes)
				of.count(takes)
			}
			of.Launchers = max(of.Launchers, one.Launchers)
			if one.Trouble != "" {
				of.Trouble = one.Trouble
			}
			all.pools = append(all.pools, one)
		}
		all.providers = append(all.providers, of)
	}
	return all
}

func newCapacity(provider, pool string, limits map[string]int) Capacity {
	c := Capacity{Provider: provider, Pool: pool, Uses: map[string]Use{instances: {}}, Nodes: map[string]int{}}
	for name, limit := range limits {
		c.Uses[name] = Use{Limit: &limit}
	}
	return c
}

// serving says which launchers have a pool.
func (t *Tree) serving(c *Capacity) {
	usable := false
	for _, p := range t.Pools {
		if p.Broken != nil || p.ProviderName != c.Provider || p.PoolName != c.Pool {
			continue
		}
		c.Launchers++
		usable = usable || p.Trouble == ""
		c.Trouble = p.Trouble
	}
	if usable {
		c.Trouble = ""
	}
}

// inPool is where a node is.
type inPool struct{ provider, pool string }

// takings are what the nodes of a pool take together, and how many are in which state.
type takings struct {
	nodes map[zkmodel.NodeState]int
	// instances are those of nodes that do not say what they take.
	instances int
	resources map[string]int
	// ending and whyEnding are as in Capacity.
	ending    map[string]int
	whyEnding string
	// undeleted and whyUndeleted, too.
	undeleted    map[string]int
	whyUndeleted string
}

// takings adds up the nodes of each pool. There may be tens of thousands of them.
func (t *Tree) takings() map[inPool]*takings {
	all := map[inPool]*takings{}
	for _, node := range t.Nodes {
		if node.Broken != nil {
			continue
		}
		at := inPool{node.Provider, node.Pool}
		sum := all[at]
		if sum == nil {
			sum = &takings{nodes: map[zkmodel.NodeState]int{}, resources: map[string]int{}, ending: map[string]int{}, undeleted: map[string]int{}}
			all[at] = sum
		}
		sum.nodes[node.State]++
		if node.Serverless() {
			if node.Stuck(t.Now) {
				add(sum.ending, node)
				sum.whyEnding = cmp.Or(node.DeleteError, sum.whyEnding)
			}
			continue
		}
		if why := node.Undeleted(); why != "" {
			add(sum.undeleted, node)
			sum.whyUndeleted = why
		}
		if len(node.Resources) == 0 {
			sum.instances++
		}
		for name, amount := range node.Resources {
			sum.resources[name] += amount
		}
	}
	for _, sum := range all {
		if sum.instances > 0 {
			sum.resources[instances] += sum.instances
		}
	}
	return all
}

// add adds what a node takes to a sum.
func add(sum map[string]int, n *zkmodel.Node) {
	if len(n.Resources) == 0 {
		sum[instances]++
	}
	for name, amount := range n.Resources {
		sum[name] += amount
	}
}

// count counts what nodes take.
func (c *Capacity) count(t *takings) {
	for state, n := range t.nodes {
		c.Nodes[string(state)] += n
	}
	if c.ending == nil {
		c.ending, c.undeleted = map[string]int{}, map[string]int{}
	}
	for name, amount := range t.ending {
		c.ending[name] += amount
	}
	for name, amount := range t.undeleted {
		c.undeleted[name] += amount
	}
	c.whyEnding, c.whyUndeleted = cmp.Or(c.whyEnding, t.whyEnding), cmp.Or(c.whyUndeleted, t.whyUndeleted)
	for name, amount := range t.resources {
		use, known := c.Uses[name]
		if !known && name != cores && name != ram {
			continue // without a limit it tells nobody anything
		}
		use.Used += amount
		c.Uses[name] = use
	}
}
