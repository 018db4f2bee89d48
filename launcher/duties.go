package launcher

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What is to be done once, however many launchers there are: for a provider the
// search for leaks and the question for its limits, for a label the stock of ready nodes. Each is a share of a
// partition among the launchers that have the provider or the label, so it has
// one worker at a time, and another when that one dies. What concerns all
// launchers alike, whatever they serve, is done by the one that they elect.

// dutySettleTime is how long the launchers must have been the same before duties are
// handed out anew.
const dutySettleTime = time.Second

// runDuties takes part in all partitions of ours until ctx ends.
func (l *Launcher) runDuties(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	take := func(dir string, work func(context.Context, *recipe.Held) error) {
		p := recipe.NewPartition(l.deps.Client, dir, l.member, recipe.PartitionOptions{
			Settle: dutySettleTime, Logger: l.log.Named("duties"),
		})
		p.SetShares([]string{"duty"})
		group.Go(func() error {
			return p.Run(ctx, func(ctx context.Context, _ string, h *recipe.Held) error {
				if err := l.mirror.WaitSynced(ctx); err != nil {
					return err
				}
				if err := work(ctx, h); err != nil {
					return err
				}
				return context.Cause(ctx) // why it has ended
			})
		})
	}
	group.Go(func() error {
		tidying := recipe.Periodic{Every: l.deps.Resync, Task: l.clearUp, Logger: l.log.Named("duties")}
		return tidying.Run(ctx, recipe.NewElection(l.deps.Client, zkmodel.TidyElectionPath, l.member))
	})
	for _, c := range l.clouds {
		take(zkmodel.ProviderDutyPath(c.cfg.Name), func(ctx context.Context, h *recipe.Held) error {
			if c.cfg.Driver == configs.DriverStatic {
				return l.keepSlots(ctx, zkmodel.NewStore(h.Session(), l.now), c)
			}
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return l.patrol(ctx, zkmodel.NewStore(h.Session(), l.now), c) })
			group.Go(func() error { return l.askLimits(ctx, zkmodel.NewStore(h.Session(), l.now), c) })
			return group.Wait()
		})
	}
	for _, label := range l.stocked() {
		take(zkmodel.LabelDutyPath(label.Name), func(ctx context.Context, h *recipe.Held) error {
			return l.keepStock(ctx, zkmodel.NewStore(h.Session(), l.now), label)
		})
	}
	return group.Wait()
}
