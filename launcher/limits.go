package launcher

import (
	"context"
	"encoding/json"
	"path"

	"golang.org/x/sync/errgroup"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A provider is asked for its limits by one launcher, which writes them into the
// tree for all. They are asked for again when they are old; sooner while a request
// waits for room, and when they were taken out of the tree, by whoever met a cloud
// that was fuller than it said.

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
					c.Limit(limits)
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
