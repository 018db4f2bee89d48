package view

import (
	"context"
	"errors"
	"sync"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// Root is a part of the tree that no mirror has and whose changes are shown.
type Root struct {
	Path   string
	Filter func(path string) recipe.Interest // nil follows all of it
}

// follow follows the roots until ctx ends, and wakes for each change.
func follow(ctx context.Context, group *sync.WaitGroup, client *recipe.Client, roots []Root, wake chan<- struct{}) (synced func(context.Context) error) {
	var trees []*recipe.Tree
	for _, root := range roots {
		tree := recipe.NewTree(client, root.Path, recipe.TreeOptions{Filter: root.Filter})
		trees = append(trees, tree)
		changes := tree.Subscribe(nil)
		group.Go(func() { awaken(ctx, changes, wake) })
		group.Go(func() { _ = tree.Run(ctx) }) // it ends with ctx
	}
	return func(ctx context.Context) error {
		for _, tree := range trees {
			if err := tree.WaitSynced(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// reader makes the tables of a listing that is followed.
type reader struct {
	watched Watched
	mirror  *zkmodel.Mirror
	client  *recipe.Client
	last    *listing.Table
}

// table is the listing as it is now. Where something of it has to be read and there is no session, it is
// what it was last: that the session is lost is told.
func (r *reader) table(ctx context.Context, now time.Time) (*listing.Table, error) {
	if r.watched.Read == nil {
		return r.watched.Table(r.mirror, now), nil
	}
	if r.last != nil && !r.client.State().Alive {
		return r.last, nil
	}
	session, err := r.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	bound, release := session.Bind(ctx)
	defer release()
	table, err := r.watched.Read(bound, r.mirror, session, now)
	switch {
	case err == nil:
		r.last = table
	case ctx.Err() == nil && r.last != nil && errors.Is(err, recipe.ErrSessionLost):
		return r.last, nil
	}
	return table, err
}
