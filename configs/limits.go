package configs

import (
	"math"
	"time"
)

// Unlimited is what Limit.Get returns where nothing is limited: more than any limit.
const Unlimited = math.MaxInt

// Limit is one limit of a configuration: a number of servers, of builds, an age.
type Limit struct {
	Section        string // of the file: "" is the top
	Key            string
	Provider, Pool string // that it belongs to; "" for the rest
	Get            func() int
	Set            func(int)
}

// Path is the limit's place in the file. Static nodes of one name share it.
func (l Limit) Path() string {
	if l.Section == "" {
		return l.Key
	}
	return l.Section + "." + l.Key
}

// Limits are all limits of a configuration but those of tenants. Setting one changes
// the configuration.
func (c *Config) Limits() []Limit {
	list := []Limit{
		limitOf("", "max-concurrent-builds", &c.MaxConcurrentBuilds, 0),
		limitOf("", "max-concurrent-uploads", &c.MaxConcurrentUploads, 0),
		ageOf("", "max-hold-age", &c.MaxHoldAge),
	}
	for i := range c.Labels {
		list = append(list, ageOf("labels["+shown(c.Labels[i].Name)+"]", "max-ready-age", &c.Labels[i].MaxReadyAge))
	}
	for i := range c.Providers {
		list = append(list, c.Providers[i].limits()...)
	}
	return list
}

// limits are those of a provider, and of its pools.
func (p *Provider) limits() []Limit {
	section := ProviderSection(p.Name)
	list := []Limit{limitOf(section, "max-concurrency", &p.MaxConcurrency, none)}
	if own, ok := p.Settings.(settings); ok {
		list = append(list, own.limits(section)...)
	}
	for i := range p.Pools {
		pool := &p.Pools[i]
		section, from := PoolSection(p.Name, pool.Name), len(list)
		list = append(list,
			limitOf(section, "max-servers", &pool.MaxServers, none), limitOf(section, "max-cores", &pool.MaxCores, none),
			limitOf(section, "max-ram", &pool.MaxRAM, none), limitOf(section, "max-volumes", &pool.MaxVolumes, none),
			limitOf(section, "max-volume-gb", &pool.MaxVolumeGB, none))
		for j := range pool.Nodes {
			node := &pool.Nodes[j]
			list = append(list, limitOf(section+".nodes["+shown(node.Name)+"]", "max-parallel-jobs", &node.MaxParallelJobs, none))
		}
		for j := range list[from:] {
			list[from+j].Pool = pool.Name
		}
	}
	for i := range list {
		list[i].Provider = p.Name
	}
	return list
}

// limitOf is a limit that is kept in a number, of which one value is no limit.
func limitOf(section, key string, n *int, no int) Limit {
	return Limit{
		Section: section, Key: key,
		Get: func() int {
			if *n == no {
				return Unlimited
			}
			return *n
		},
		Set: func(value int) {
			if *n = value; value == Unlimited {
				*n = no
			}
		},
	}
}

// ageOf is a limit of time, in seconds; 0 is none.
func ageOf(section, key string, d *time.Duration) Limit {
	return Limit{
		Section: section, Key: key,
		Get: func() int {
			if *d == 0 {
				return Unlimited
			}
			return int(*d / time.Second)
		},
		Set: func(value int) {
			if *d = time.Duration(value) * time.Second; value == Unlimited {
				*d = 0
			}
		},
	}
}
