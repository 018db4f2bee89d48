package main

import (
	"context"
	"fmt"
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

// show prints a listing in the shape that was asked for. What could not be read is
// marked there, and told.
func (o output) show(a *app, table *listing.Table) error {
	if broken := table.Broken(); len(broken) > 0 {
		fmt.Fprintf(a.stderr, "poolkeeper: %d records or lists of them cannot be read or decoded and show as broken: %s\n",
			len(broken), listing.Visible(a.secrets.Text(broken[0].Error())))
	}
	if o.Output == "json" {
		return table.WriteJSON(a.stdout)
	}
	return table.WriteText(a.stdout, o.Detail)
}

// imageListCmd lists uploads.
type imageListCmd struct{ output }

// Run is the command.
func (c imageListCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		return c.show(a, listing.UploadsOnTrial(images, a.trials(ctx, store, images), time.Now()))
	})
}

// trials reads the trials of uploads of some images. The listing is worth having without.
func (a *app) trials(ctx context.Context, store *zkmodel.Store, images []*zkmodel.Image) []*zkmodel.Validation {
	trials, err := store.TrialsOf(ctx, images...)
	if err != nil {
		fmt.Fprintln(a.stderr, "poolkeeper: cannot tell how far trials of uploads have come:", listing.Visible(a.secrets.Text(err.Error())))
	}
	return trials
}

// dibImageListCmd lists builds.
type dibImageListCmd struct{ output }

// Run is the command.
func (c dibImageListCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		return c.show(a, listing.Builds(images, time.Now()))
	})
}

// imageStatusCmd lists the images' flags.
type imageStatusCmd struct {
	output
	All bool `help:"Also images that are not configured, and of which nothing is left."`
}

// Run is the command.
func (c imageStatusCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		configured := cfg.HasImage
		if c.All {
			configured = nil
		}
		for _, image := range images {
			if image.BuildRequested != nil && !cfg.HasImage(image.Name) {
				fmt.Fprintf(a.stderr, "poolkeeper: image %s is not in %s: a builder that has it serves the request for a build, or image-build-cancel withdraws it\n",
					listing.Visible(image.Name), cfg.Path)
			}
		}
		return c.show(a, listing.ImagesOnTrial(images, a.trials(ctx, store, images), time.Now(), configured))
	})
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
		pools, err := store.Components(ctx, zkmodel.KindPool)
		if err != nil { // the list is worth having without
			fmt.Fprintln(a.stderr, "poolkeeper: cannot tell which requests wait for a provider:", err)
		}
		for _, r := range requests {
			if why := zkmodel.WaitsForProvider(pools, r); why != "" && r.State == zkmodel.RequestRequested {
				r.Reason = why
			}
		}
		return c.show(a, listing.Requests(requests))
	})
}
