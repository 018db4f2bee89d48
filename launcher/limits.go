package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A provider is asked for its limits by one launcher, which writes them into the
// tree for all. They are asked for again when they are old, and when they were
// taken out of the tree, by whoever met a cloud that was fuller than it said.

// newLimits follows what providers said.
func newLimits(deps Deps) *recipe.Tree {
	return recipe.NewTree(deps.Client, zkmodel.LimitsRoot, recipe.TreeOptions{
		Logger: deps.Logger.Named("limits"),
		Filter: func(p string) recipe.Interest {
			if p == zkmodel.LimitsRoot {
				return recipe.Children
			}
			return recipe.Data
		},
	})
}

// followLimits hands on to our clouds what was written, until ctx ends.
func (l *Launcher) followLimits(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.limits.Run(ctx) })
	group.Go(func() error {
		changes := l.limits.Subscribe(path.Base)
		defer changes.Close()
		for {
			changes.Take()
			for name, c := range l.clouds {
				var limits providers.Resources
				if entry, there := l.limits.Get(zkmodel.LimitsPath(name)); there && json.Unmarshal(entry.Data, &limits) == nil {
					c.limit(limits)
				}
			}
			select {
			case <-changes.C():
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

// askLimits keeps the limits of a provider in the tree fresh, until ctx ends.
func (l *Launcher) askLimits(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	c.awaitOpen(ctx)
	changes := l.limits.Subscribe(path.Base)
	defer changes.Close()
	retry := backoff{first: time.Second, longest: time.Minute}
	failures := 0
	for ctx.Err() == nil {
		wait := limitsAge
		if err := l.askOnce(ctx, store, c); err != nil {
			failures++
			wait = retry.after(failures)
			l.log.Warn("Provider does not tell its limits; the old ones count", "provider", c.cfg.Name, "error", err, "retry", wait)
		} else {
			failures = 0
		}
		if err := l.limits.Barrier(ctx); err != nil { // shows what we wrote
			return err
		}
		timer := time.NewTimer(wait)
		for asked := false; !asked && ctx.Err() == nil; {
			changes.Take()
			if _, there := l.limits.Get(zkmodel.LimitsPath(c.cfg.Name)); !there && failures == 0 {
				break // somebody wants them anew
			}
			select {
			case <-timer.C:
				asked = true
			case <-changes.C():
			case <-ctx.Done():
			}
		}
		timer.Stop()
	}
	return nil
}

func (l *Launcher) askOnce(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	p, err := c.use()
	if err != nil {
		return err
	}
	limits, err := p.Limits(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	return store.SaveLimits(ctx, c.cfg.Name, data)
}

// refused notes that a cloud said it is full, although we counted room: it rests,
// and is asked for its limits anew.
func (s *shift) refused(ctx context.Context, c *cloud, reason error) {
	c.refused(reason)
	if err := s.store.ForgetLimits(ctx, c.cfg.Name); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("Limits stay as they are", "provider", c.cfg.Name, "error", err)
	}
}
