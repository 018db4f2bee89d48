package configs

import (
	"maps"
	"slices"
)

// Copy is a configuration whose lists and limits can be changed without the other's.
// What they refer to beyond that is shared.
func (c *Config) Copy() *Config {
	one := *c
	one.DiskImages, one.Labels = slices.Clone(c.DiskImages), slices.Clone(c.Labels)
	one.Frozen, one.TenantLimits = slices.Clone(c.Frozen), slices.Clone(c.TenantLimits)
	for i := range one.TenantLimits {
		one.TenantLimits[i].Limits = maps.Clone(one.TenantLimits[i].Limits)
	}
	one.Providers = slices.Clone(c.Providers)
	for i := range one.Providers {
		one.Providers[i] = one.Providers[i].copied()
	}
	return &one
}

func (p Provider) copied() Provider {
	p.DiskImages, p.Pools = slices.Clone(p.DiskImages), slices.Clone(p.Pools)
	if own, ok := p.Settings.(settings); ok {
		p.Settings = own.copied()
	}
	for i := range p.Pools {
		p.Pools[i].Labels, p.Pools[i].Nodes = slices.Clone(p.Pools[i].Labels), slices.Clone(p.Pools[i].Nodes)
	}
	return p
}
