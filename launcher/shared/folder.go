// Package shared is what all launchers of a tree know alike, as one writes it down and the
// others read it: the limits of clouds, what their refusals taught, what pools offer; and
// ZooKeeper's clock, by which all of them count.
package shared

import (
	"context"
	"path"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel/recipe"
)

// newFolder is a view of the records in one folder of the tree.
func newFolder(client *recipe.Client, root string, log hclog.Logger) *recipe.Tree {
	return recipe.NewTree(client, root, recipe.TreeOptions{
		Logger: log,
		Filter: func(p string) recipe.Interest {
			if p == root {
				return recipe.Children
			}
			return recipe.Data
		},
	})
}

// follow keeps a view fresh until ctx ends, and calls changed at first and whenever a
// record has changed.
func follow(ctx context.Context, tree *recipe.Tree, changed func()) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return tree.Run(ctx) })
	group.Go(func() error {
		changes := tree.Subscribe(path.Base)
		defer changes.Close()
		for {
			changes.Take()
			changed()
			select {
			case <-changes.C():
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}
