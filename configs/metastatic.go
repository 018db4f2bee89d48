package configs

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// MetastaticLabel is a label of the driver metastatic: its nodes are slots on nodes of another
// label, whatever driver makes those.
type MetastaticLabel struct {
	BackingLabel     string
	MaxParallelJobs  int           // slots on one backing node
	GraceTime        time.Duration // for which one is kept that nobody uses
	MinRetentionTime time.Duration // for which one is kept in any case
	MaxAge           time.Duration // after which it takes no new nodes; 0 is never
}

// metastaticDriver is the entry of the table of drivers.
func metastaticDriver() driver {
	return driver{
		name: DriverMetastatic, noImages: true,
		defaults: func(p *Provider) {
			p.BootTimeout, p.LaunchTimeout, p.LaunchRetries = 2*time.Minute, time.Hour, 3
		},
		keys: func(l *loader, p *Provider) fields {
			return fields{
				"boot-timeout":   patience(&p.BootTimeout, day),
				"launch-timeout": patience(&p.LaunchTimeout, 7*day),
				"launch-retries": number(&p.LaunchRetries, 1, unlimited),
				"pools":          named(&p.Pools, poolName, l.metastaticPool(p)),
			}
		},
		check: func(_ *loader, v value, _ *Provider, have present) {
			if v.asks != nil {
				v.asks.Required = append(v.asks.Required, "pools")
				return
			}
			v.require(have, "pools")
		},
		backing: func(p *Provider) map[string]string {
			labels := map[string]string{}
			for _, pool := range p.Pools {
				for _, label := range pool.Labels {
					if own, ok := label.Settings.(*MetastaticLabel); ok {
						labels[label.Name] = own.BackingLabel
					}
				}
			}
			return labels
		},
	}
}

// BackingLabels are the labels whose nodes are slots on nodes of others, and the labels of
// those; nil where the driver's nodes stand on none.
func (p *Provider) BackingLabels() map[string]string {
	d, _ := driverNamed(p.Driver)
	if d.backing == nil {
		return nil
	}
	return d.backing(p)
}

// metastaticPool decodes one pool of slots.
func (l *loader) metastaticPool(p *Provider) func(value) Pool {
	shared := map[string]MetastaticLabel{} // by backing label, over all pools of the provider
	return func(v value) Pool {
		pool := defaultPool(p)
		pool.HostKeyChecking = false // the backing node's keys were read when it was launched
		keys := l.poolKeys(&pool)
		maps.Copy(keys, fields{
			"host-key-checking": flag(&pool.HostKeyChecking),
			"labels":            named(&pool.Labels, poolLabelName, l.metastaticLabel(p, shared)),
		})
		v.require(v.decode("pool", keys), "name", "labels")
		return pool
	}
}

// metastaticLabel decodes one label of slots. Who shares backing nodes has to agree on what
// they are: shared is what others have said.
func (l *loader) metastaticLabel(p *Provider, shared map[string]MetastaticLabel) func(value) PoolLabel {
	return func(v value) PoolLabel {
		own := &MetastaticLabel{MaxParallelJobs: 1, GraceTime: time.Minute}
		label := PoolLabel{Connection: defaultConnection, Settings: own}
		have := v.decode("pool label", fields{
			"name":               l.labelName(&label.Name),
			"backing-label":      checkedName("label", &own.BackingLabel),
			"max-parallel-jobs":  number(&own.MaxParallelJobs, 1, mostSlots),
			"grace-time":         wholeSeconds(&own.GraceTime, 0),
			"min-retention-time": wholeSeconds(&own.MinRetentionTime, 0),
			"max-age":            wholeSeconds(&own.MaxAge, 0),
			"host-key-checking":  optionalFlag(&label.HostKeyChecking),
		})
		v.require(have, "name", "backing-label")
		if own.BackingLabel == "" || v.asks != nil {
			return label
		}
		if own.MaxAge > 0 && own.MaxAge < own.MinRetentionTime {
			v.fail("max-age is shorter than min-retention-time")
		}
		if other, said := shared[own.BackingLabel]; said && other != *own {
			v.fail("another label of the provider has the backing-label %q, and other settings of it: they have to be the same", own.BackingLabel)
		}
		shared[own.BackingLabel] = *own
		v.later(func() {
			if way := l.backTo(label.Name, own.BackingLabel); way != nil {
				v.fail("the backing-label %q leads back to the label itself (%s): each node would ask for another", own.BackingLabel, strings.Join(way, ", "))
				return
			}
			l.checkBacking(v, p, own.BackingLabel)
		})
		return label
	}
}

// backTo is the way from a backing label over the backing labels of others, of whatever provider,
// to the label that it is of; nil when there is none.
func (l *loader) backTo(label, backing string) []string {
	type way struct {
		label string
		from  *way
	}
	seen := map[string]bool{}
	for queue := []*way{{label: backing}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.label == label {
			var names []string
			for ; at != nil; at = at.from {
				names = append(names, at.label)
			}
			slices.Reverse(names)
			return append([]string{label}, names...)
		}
		if seen[at.label] {
			continue
		}
		seen[at.label] = true
		for i := range l.cfg.Providers {
			if next := l.cfg.Providers[i].BackingLabels()[at.label]; next != "" {
				queue = append(queue, &way{next, at})
			}
		}
	}
	return nil
}

// mostSlots is how many slots the record of a backing node has room for.
const mostSlots = 1000

// checkBacking reports a backing label that nothing in this file makes nodes of: another
// launcher, or Nodepool's, may.
func (l *loader) checkBacking(v value, p *Provider, label string) {
	for i := range l.cfg.Providers {
		other := &l.cfg.Providers[i]
		if other.Name != p.Name && other.offers(label) {
			return
		}
	}
	if p.offers(label) {
		v.report(lint, "the backing-label %q is one of the provider's own labels, and no other provider of this file has it", label)
		return
	}
	v.report(lint, "no other provider of this file has the backing-label %q: a launcher with another file has to", label)
}

// offers reports whether a pool of the provider makes nodes of a label.
func (p *Provider) offers(label string) bool {
	return slices.ContainsFunc(p.Pools, func(pool Pool) bool {
		return slices.ContainsFunc(pool.Labels, func(l PoolLabel) bool { return l.Name == label }) ||
			slices.ContainsFunc(pool.Nodes, func(n StaticNode) bool { return slices.Contains(n.Labels, label) })
	})
}
