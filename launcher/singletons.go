package launcher

import (
	"context"

	"poolkeeper/configs"
	"poolkeeper/launcher/backing"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/singleton"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
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
		Stocked: l.stocked(), Pools: stockPools{l}, Machines: l.scanner, Backing: l.keepBacking, Rival: l.rival,
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

// knownBacking is what is known of the backing nodes of a provider, within a session.
func (l *Launcher) knownBacking(provider string, store *zkmodel.Store) *backing.Known {
	return &backing.Known{
		Provider: provider, Folder: l.backing[provider], Tree: l.mirror, Store: store, Step: l.step,
		Leaving: func(provider string) string { return l.drained()[provider] }, Interrupted: l.interrupted,
	}
}

// interrupted says why the cloud has taken a node's machine back; "" when it has not, as far as
// is known here.
func (l *Launcher) interrupted(n *zkmodel.Node) string {
	c, ours := l.clouds[n.Provider]
	if !ours || n.Broken != nil || n.ExternalID.IsNull() {
		return ""
	}
	if d := c.Doubts()[n.ExternalID.Text()]; !d.Missing {
		return d.Why
	}
	return ""
}

// keepBacking looks after the backing nodes of a provider that has some, until ctx ends.
func (l *Launcher) keepBacking(ctx context.Context, provider string, store *zkmodel.Store) error {
	folder, cloud := l.backing[provider], l.clouds[provider]
	if folder == nil || cloud.Backed() == nil {
		return nil
	}
	if err := folder.WaitSynced(ctx); err != nil {
		return err
	}
	known := l.knownBacking(provider, store)
	cloud.OnBacking(known) // no session of the launcher may have told it yet
	labels := cloud.Section()
	changes := []*recipe.Subscription{
		l.mirror.SubscribeNodes(), l.mirror.SubscribeRequests(), l.mirror.SubscribePauses(), l.mirror.SubscribeComponents(),
	}
	wakes := make([]backing.Changes, len(changes))
	for i, c := range changes {
		defer c.Close()
		wakes[i] = c
	}
	keeper := &backing.Keeper{
		Known: known, Backed: cloud.Backed(), Now: l.now, Log: l.log,
		Rival:  func() string { return l.rival(provider) },
		Wants:  func(label string) string { return labels.BackingLabels()[label] },
		Frozen: func(label string) string { return l.cfg.FrozenSlots(provider, label) },
	}
	return keeper.Run(ctx, wakes...)
}
