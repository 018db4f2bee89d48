package launcher

import (
	"context"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/singleton"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
)

// runDuties takes part in what one launcher does for all, until ctx ends.
func (l *Launcher) runDuties(ctx context.Context) error {
	clouds := map[string]singleton.Cloud{}
	for name, c := range l.clouds {
		clouds[name] = supply.Duty{Provider: c}
	}
	duties := singleton.Duties{
		Client: l.deps.Client, Config: l.cfg, Member: l.member, Mirror: l.mirror,
		LimitsTree: l.limits.Tree, OfferView: l.offers, Clouds: clouds,
		Stocked: l.stocked(), Pools: stockPools{l}, Machines: l.scanner,
		Leaked: l.metrics.Leaked, Hold: l.deps.Process.Hold, Has: l.metrics.Duty,
		Ahead: l.ahead, Now: l.now, Resync: l.deps.Resync, Log: l.log,
	}
	l.metrics.NoDuties()
	return duties.Run(ctx)
}

// stocked lists the labels that we keep in stock.
func (l *Launcher) stocked() []configs.Label { return pool.Stocked(l.cfg.Labels, l.pools) }

// stockPools are our pools as the stock sees them.
type stockPools struct{ *Launcher }

// CanMake reports whether a pool of ours has an image for a label.
func (p stockPools) CanMake(label string) bool {
	return pool.CanMake(p.pools, p.mirror.Images(), label)
}

// Deciding is the launcher's.
func (p stockPools) Deciding(ctx context.Context) (done func()) { return p.deps.Deciding(ctx) }

// Asked is called when a node for stock was asked for.
func (p stockPools) Asked(string) { p.step(step.MinReady) }
