package main

import (
	"context"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// output are the flags of every listing.
type output struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"table|json" help:"How to print: table or json (${default})."`
	Detail bool   `help:"Print more columns; JSON always has all."`
}

// show prints a listing in the shape that was asked for.
func (o output) show(a *app, table *listing.Table) error {
	if o.Output == "json" {
		return table.WriteJSON(a.stdout)
	}
	return table.WriteText(a.stdout, o.Detail)
}

// images prints a listing of the images in the tree.
func (o output) images(ctx context.Context, a *app, list func([]*zkmodel.Image, time.Time) *listing.Table) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		return o.show(a, list(images, time.Now()))
	})
}

// imageListCmd lists uploads.
type imageListCmd struct{ output }

// Run is the command.
func (c imageListCmd) Run(ctx context.Context, a *app) error {
	return c.images(ctx, a, listing.Uploads)
}

// dibImageListCmd lists builds.
type dibImageListCmd struct{ output }

// Run is the command.
func (c dibImageListCmd) Run(ctx context.Context, a *app) error {
	return c.images(ctx, a, listing.Builds)
}

// imageStatusCmd lists the images' flags.
type imageStatusCmd struct{ output }

// Run is the command.
func (c imageStatusCmd) Run(ctx context.Context, a *app) error {
	return c.images(ctx, a, listing.Images)
}

// listCmd lists nodes.
type listCmd struct{ output }

// Run is the command.
func (c listCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		nodes, err := store.Nodes(ctx)
		if err != nil {
			return err
		}
		return c.show(a, listing.Nodes(nodes, time.Now()))
	})
}

// requestListCmd lists node requests.
type requestListCmd struct{ output }

// Run is the command.
func (c requestListCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		requests, err := store.Requests(ctx)
		if err != nil {
			return err
		}
		return c.show(a, listing.Requests(requests))
	})
}
