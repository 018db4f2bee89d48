package fake

import (
	"context"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// Limits implements providers.Nodes.
func (p *Provider) Limits(ctx context.Context, _ providers.Ours) (providers.Resources, error) {
	if err := p.before(ctx, OpLimits, ""); err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return providers.Resources{
		providers.Instances: p.fake.MaxInstances,
		providers.Cores:     p.fake.MaxInstances * coresPerInstance,
		providers.RAM:       p.fake.MaxInstances * ramPerInstance,
		providers.Volumes:   volumes,
		providers.VolumeGB:  volumeGB,
	}, nil
}

// NodeResources implements providers.Nodes: every node has the one flavor.
func (p *Provider) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	if _, err := p.label(pool, label); err != nil {
		return nil, fmt.Errorf("size node: %w", err)
	}
	return providers.Resources{
		providers.Instances: 1, providers.Cores: nodeCores, providers.RAM: nodeRAM,
	}, nil
}

// Zones lists the availability zones.
func (p *Provider) Zones(context.Context) ([]string, error) { return zones(), nil }

// label finds a label of the configuration that this cloud can serve.
func (p *Provider) label(pool, name string) (configs.PoolLabel, error) {
	for _, candidate := range p.cfg.Pools {
		if candidate.Name != pool {
			continue
		}
		for _, l := range candidate.Labels {
			if l.Name != name {
				continue
			}
			if l.MinRAM > nodeRAM {
				return l, fmt.Errorf("%w: provider %s: pool %s: label %s: no flavor has min-ram %d",
					providers.ErrInvalid, p.cfg.Name, pool, name, l.MinRAM)
			}
			return l, nil
		}
		return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: pool %s: no label %s",
			providers.ErrInvalid, p.cfg.Name, pool, name)
	}
	return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: no pool %s (for label %s)",
		providers.ErrInvalid, p.cfg.Name, pool, name)
}
