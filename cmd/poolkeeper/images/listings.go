package images

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// ImageListCmd lists uploads.
type ImageListCmd struct {
	view.Flags
	view.ByState
	view.ByProvider
	view.ByImage
}

// Run is the command.
func (c ImageListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		return c.Show(a, listing.UploadsOnTrial(images, trials(ctx, a, store, images), time.Now()),
			view.States(c.ByState, zkmodel.UploadStates()...), c.Providers(cfg), c.Images(cfg))
	})
}

// trials reads the trials of uploads of some images. The listing is worth having without.
func trials(ctx context.Context, a *app.App, store *zkmodel.Store, images []*zkmodel.Image) []*zkmodel.Validation {
	trials, err := store.TrialsOf(ctx, images...)
	if err != nil {
		fmt.Fprintln(a.Stderr, "poolkeeper: cannot tell how far trials of uploads have come:", listing.Visible(a.Secrets.Text(err.Error())))
	}
	return trials
}

// paused is how the listing shows the ready builds of an image that is paused.
const paused zkmodel.BuildState = "paused"

// DIBImageListCmd lists builds.
type DIBImageListCmd struct {
	view.Flags
	view.ByState
	view.ByImage
}

// Run is the command.
func (c DIBImageListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		return c.Show(a, listing.Builds(images, time.Now()), view.States(c.ByState, append(zkmodel.BuildStates(), paused)...), c.Images(cfg))
	})
}

// ImageStatusCmd lists the images' flags.
type ImageStatusCmd struct {
	view.Flags
	view.ByImage
	All bool `help:"Also images that are not configured, and of which nothing is left."`
}

// Run is the command.
func (c ImageStatusCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
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
				fmt.Fprintf(a.Stderr, "poolkeeper: image %s is not in %s: a builder that has it serves the request for a build, or image-build-cancel withdraws it\n",
					listing.Visible(image.Name), cfg.Path)
			}
		}
		return c.Show(a, listing.ImagesOnTrial(images, trials(ctx, a, store, images), time.Now(), configured), c.Images(cfg))
	})
}
