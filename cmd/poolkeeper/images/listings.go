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
	"poolkeeper/zkmodel/recipe"
)

// ImageListCmd lists uploads.
type ImageListCmd struct {
	view.Flags
	view.Watching
	view.ByState
	view.ByProvider
	view.ByImage
}

// Run is the command.
func (c ImageListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		filters := []view.Filter{view.States(c.ByState, zkmodel.UploadStates()...), c.Providers(cfg), c.Images(cfg)}
		if c.Watch {
			return c.Follow(ctx, a, client, watchedImages(cfg, true, listing.UploadsOnTrial), filters...)
		}
		images, err := store.Images(bound)
		if err != nil {
			return err
		}
		return c.Show(a, listing.UploadsOnTrial(images, trials(bound, a, store, images), time.Now()), filters...)
	})
}

// watchedImages are the images as a mirror has them, with trials where a listing shows them.
func watchedImages(cfg *configs.Config, tried bool, table func([]*zkmodel.Image, []*zkmodel.Validation, time.Time) *listing.Table) view.Watched {
	return view.Watched{
		Parts: zkmodel.PartImages,
		Begin: func(m *zkmodel.Mirror) {
			if tried {
				m.FollowValidations()
			}
			if cfg.HasCanary() {
				m.FollowCanaries()
			}
		},
		Table: func(m *zkmodel.Mirror, now time.Time) *listing.Table {
			images := m.Images()
			var trials []*zkmodel.Validation
			for _, i := range images {
				trials = append(trials, m.TrialsOf(i)...)
			}
			return table(images, trials, now)
		},
	}
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
	view.Watching
	view.ByState
	view.ByImage
}

// Run is the command.
func (c DIBImageListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		filters := []view.Filter{view.States(c.ByState, append(zkmodel.BuildStates(), paused)...), c.Images(cfg)}
		if c.Watch {
			watched := watchedImages(cfg, false, func(images []*zkmodel.Image, _ []*zkmodel.Validation, now time.Time) *listing.Table {
				return listing.Builds(images, now)
			})
			return c.Follow(ctx, a, client, watched, filters...)
		}
		images, err := store.Images(bound)
		if err != nil {
			return err
		}
		return c.Show(a, listing.Builds(images, time.Now()), filters...)
	})
}

// ImageStatusCmd lists the images' flags.
type ImageStatusCmd struct {
	view.Flags
	view.Watching
	view.ByImage
	All bool `help:"Also images that are not configured, and of which nothing is left."`
}

// Run is the command.
func (c ImageStatusCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		configured := cfg.HasImage
		if c.All {
			configured = nil
		}
		if c.Watch {
			watched := watchedImages(cfg, true, func(images []*zkmodel.Image, trials []*zkmodel.Validation, now time.Time) *listing.Table {
				return listing.ImagesOnTrial(images, trials, now, configured)
			})
			return c.Follow(ctx, a, client, watched, c.Images(cfg))
		}
		images, err := store.Images(bound)
		if err != nil {
			return err
		}
		for _, image := range images {
			if image.BuildRequested != nil && !cfg.HasImage(image.Name) {
				fmt.Fprintf(a.Stderr, "poolkeeper: image %s is not in %s: a builder that has it serves the request for a build, or image-build-cancel withdraws it\n",
					listing.Visible(image.Name), cfg.Path)
			}
		}
		return c.Show(a, listing.ImagesOnTrial(images, trials(bound, a, store, images), time.Now(), configured), c.Images(cfg))
	})
}
