package launcher

import (
	"context"
	"fmt"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/singleton"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
)

const (
	minReadyRequestor = schedule.MinReadyRequestor
	staticLauncher    = schedule.StaticLauncher
)

// runDuties takes part in what one launcher does for all, until ctx ends.
func (l *Launcher) runDuties(ctx context.Context) error {
	clouds := map[string]singleton.Cloud{}
	for name, c := range l.clouds {
		clouds[name] = cloudDuty{c}
	}
	duties := singleton.Duties{
		Client: l.deps.Client, Config: l.cfg, Member: l.member, Mirror: l.mirror,
		LimitsTree: l.limits.Tree, OfferView: l.offers, Clouds: clouds,
		Stocked: l.stocked(), Pools: stockPools{l}, Machines: staticMachines{l.scanner},
		Leaked: l.metrics.Leaked,
		Ahead:  l.ahead, Now: l.now, Resync: l.deps.Resync, Log: l.log,
	}
	return duties.Run(ctx)
}

// stocked lists the labels that we keep in stock: those with min-ready that a
// pool of ours makes nodes of.
func (l *Launcher) stocked() []configs.Label {
	return slices.DeleteFunc(slices.Clone(l.cfg.Labels), func(label configs.Label) bool {
		return label.MinReady <= 0 || !slices.ContainsFunc(l.pools, func(p *pool.Pool) bool {
			_, has := p.Labels[label.Name]
			return has && p.Frozen[label.Name] == ""
		})
	})
}

// stockPools are our pools as the stock sees them.
type stockPools struct{ *Launcher }

// CanMake reports whether a pool of ours has an image for a label.
func (p stockPools) CanMake(label string) bool {
	images := p.mirror.Images()
	return slices.ContainsFunc(p.pools, func(p *pool.Pool) bool {
		here, has := p.Labels[label]
		return has && (here.CloudImage != "" || bootable.Newest(images, here.DiskImage, p.Provider.Name) != nil)
	})
}

// Asked is called when a node for stock was asked for.
func (p stockPools) Asked(string) { p.step(step.MinReady) }

// cloudDuty is a provider as the duties see it.
type cloudDuty struct{ *supply.Provider }

func (d cloudDuty) Exists() bool { return d.IsStatic() }

func (d cloudDuty) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	return p.ListNodes(ctx)
}

func (d cloudDuty) CleanLeaks(ctx context.Context, site string) (map[string]int, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	cleaner, ok := p.(providers.Cleaner)
	if !ok {
		return nil, nil
	}
	return cleaner.CleanLeaks(ctx, site)
}

func (d cloudDuty) MoreRoom() { d.ResetQuotaBackoff() }

func (d cloudDuty) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	return p.Limits(ctx, ours)
}

func (d cloudDuty) Wanted() bool { return d.Wants() }

func (d cloudDuty) Slots() ([]providers.Slot, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	s, ok := p.(providers.Slotter)
	if !ok {
		return nil, fmt.Errorf("list the slots of %s: %w", d.Section().Name, providers.ErrNotSupported)
	}
	return s.Slots(), nil
}

// staticMachines contacts machines that exist already.
type staticMachines struct{ *node.Scanner }

func (m staticMachines) Alive(ctx context.Context, n configs.StaticNode) ([]string, error) {
	return m.Scanner.Alive(ctx, n)
}

func (m staticMachines) Address(ctx context.Context, name string) (v4, v6 string) {
	return node.PublicAddress(ctx, name)
}
