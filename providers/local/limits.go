package local

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// Limits implements providers.Nodes: max-servers guests of the largest size,
// and the memory that this host has.
func (p *Provider) Limits(ctx context.Context, _ providers.Ours) (providers.Resources, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read limits: %w", context.Cause(ctx))
	}
	ram, err := hostRAM()
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	cores := p.local.Cores
	for _, pool := range p.cfg.Pools {
		for _, label := range pool.Labels {
			cores = max(cores, label.Cores)
		}
	}
	return providers.Resources{
		providers.Instances: p.local.MaxGuests,
		providers.Cores:     p.local.MaxGuests * cores, // they share the host's
		providers.RAM:       ram,
	}, nil
}

// hostRAM is the host's memory, in MiB.
func hostRAM() (int, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, err
	}
	return int(info.Totalram * uint64(info.Unit) >> 20), nil
}

// NodeResources implements providers.Nodes.
func (p *Provider) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	l, err := p.label(pool, label)
	if err != nil {
		return nil, fmt.Errorf("size node: %w", err)
	}
	return p.size(l), nil
}

func (p *Provider) size(l configs.PoolLabel) providers.Resources {
	return providers.Resources{
		providers.Instances: 1,
		providers.Cores:     cmp.Or(l.Cores, p.local.Cores),
		providers.RAM:       cmp.Or(l.MinRAM, p.local.Memory),
	}
}

// label finds a label of the configuration that this host can serve.
//
// Errors: providers.ErrInvalid.
func (p *Provider) label(pool, name string) (configs.PoolLabel, error) {
	for _, candidate := range p.cfg.Pools {
		if candidate.Name != pool {
			continue
		}
		for _, l := range candidate.Labels {
			if l.Name == name {
				return l, p.checkSize(pool, l)
			}
		}
		return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: pool %s: no label %s",
			providers.ErrInvalid, p.cfg.Name, pool, name)
	}
	return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: no pool %s (for label %s)",
		providers.ErrInvalid, p.cfg.Name, pool, name)
}

func (p *Provider) checkSize(pool string, l configs.PoolLabel) error {
	have, err := hostRAM()
	if err != nil {
		return err
	}
	if need := p.size(l)[providers.RAM]; need > have {
		return fmt.Errorf("%w: provider %s: pool %s: label %s: min-ram: %d MiB, this host has %d",
			providers.ErrInvalid, p.cfg.Name, pool, l.Name, need, have)
	}
	return nil
}

// fits says whether the host has room for one more guest beside those.
//
// Errors: providers.ErrQuota.
func (p *Provider) fits(ctx context.Context, g guest, others []guest) error {
	limits, err := p.Limits(ctx, nil)
	if err != nil {
		return err
	}
	used := providers.Resources{
		providers.Instances: 1, providers.Cores: g.Cores, providers.RAM: g.RAM,
	}
	for _, o := range others {
		used[providers.Instances]++
		used[providers.Cores] += o.Cores
		used[providers.RAM] += o.RAM
	}
	for _, name := range []string{providers.Instances, providers.Cores, providers.RAM} {
		if used[name] > limits[name] {
			return fmt.Errorf("%w: %s: %d would be used of %d", providers.ErrQuota, name, used[name], limits[name])
		}
	}
	return nil
}
