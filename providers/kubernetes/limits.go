package kubernetes

import (
	"context"
	"fmt"
	"maps"

	"poolkeeper/providers"
)

// Limits implements providers.Nodes: those of the configuration, over all pools. A cluster
// tells no limit of namespaces; where a ResourceQuota refuses a pod, that is ErrQuota, by which
// the launcher learns. Asking proves that the cluster can be used, if only in one of its pools:
// what is wrong with another one is told by the launches there.
func (p *Provider) Limits(ctx context.Context, _ providers.Ours) (providers.Resources, error) {
	if err := p.kind.usable(ctx); err != nil {
		return nil, fmt.Errorf("limits of provider %s: %w", p.cfg.Name, failure(err))
	}
	limits := maps.Clone(p.own.MaxResources)
	if limits == nil {
		limits = map[string]int{}
	}
	for name, n := range map[string]int{
		providers.Instances: p.own.MaxServers, providers.Cores: p.own.MaxCores, providers.RAM: p.own.MaxRAM,
	} {
		if n >= 0 {
			limits[name] = n
		}
	}
	return limits, nil
}
