// Package images has the commands about images: asking for builds and waves of them, their
// listings and logs, pausing, rolling back, deleting, and explaining.
package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/builder/waves"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/wave"
)

// ImageBuildCmd asks for a build.
type ImageBuildCmd struct {
	Wait   bool   `xor:"how" help:"Wait until the image is built and uploaded, and tell how far that has come. Exit code 1 unless it is completed."`
	Follow bool   `short:"f" xor:"how" help:"The same, and print the log of the build, from the builder that has it."`
	Image  string `arg:"" help:"The image, as the configuration names it."`
}

// Run is the command.
func (c ImageBuildCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("image", c.Image); err != nil {
		return err
	}
	return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
		cfg, store := t.cfg, t.models
		image, err := configured(cfg, c.Image)
		if err != nil {
			return err
		}
		if image.Pause {
			return fmt.Errorf("image %s is paused in %s", c.Image, cfg.Path)
		}
		window := image.NextWindow(time.Now())
		if c.Wait || c.Follow {
			return c.await(ctx, a, t, window)
		}
		held, err := c.ask(ctx, a, t)
		if err != nil || held {
			return err
		}
		if window.After(time.Now()) {
			fmt.Fprintf(a.Stderr, "poolkeeper: image %s is built although its next build window begins at %s (with --wait, it waits for that)\n",
				c.Image, window.UTC().Format(time.RFC3339))
		}
		c.tellUnbuilt(ctx, a, store)
		return c.tellPaused(ctx, a, store)
	})
}

// tellUnbuilt says that no builder runs that could build the image.
func (c ImageBuildCmd) tellUnbuilt(ctx context.Context, a *app.App, store *zkmodel.Store) {
	builders, err := store.Components(ctx, zkmodel.KindBuilder)
	if err != nil {
		fmt.Fprintln(a.Stderr, "poolkeeper: cannot tell who builds the image:", listing.Visible(err.Error()))
		return
	}
	if why := zkmodel.NoBuilder(builders); why != "" {
		fmt.Fprintf(a.Stderr, "poolkeeper: %s; image %s is built when one does\n", listing.Visible(why), c.Image)
	}
}

// ask asks for the build. Where a builder is there that works at waves, it makes a job,
// too, so that what has come of it is told. It reports whether the job waits since all waves
// are held.
func (c ImageBuildCmd) ask(ctx context.Context, a *app.App, t waveTools) (held bool, err error) {
	builders, err := t.models.Components(ctx, zkmodel.KindBuilder)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(builders, (*zkmodel.Component).Heeds) {
		_, err := app.Operator(t.models).RequestBuild(ctx, c.Image)
		return false, err
	}
	w := c.wave()
	w.Follow = true
	word, held, err := t.store.AllHeld(ctx)
	if err != nil {
		return false, err
	}
	if w.Unasked = held; held {
		there, err := t.store.Unasked(ctx, c.Image)
		if err == nil && len(there) == 0 { // else that one asks
			there = []string{w.ID}
			_, err = t.store.Create(ctx, w, []wave.Job{waves.Job(t.cfg, c.Image)})
		}
		if err == nil {
			c.tellHeld(a, word, there[0])
		}
		return true, err
	}
	return false, t.store.Ask(ctx, w, waves.Job(t.cfg, c.Image))
}

// tellHeld says that all waves are held, and which wave asks for the build once they are not.
func (c ImageBuildCmd) tellHeld(a *app.App, word wave.Word, id string) {
	fmt.Fprintf(a.Stderr, "poolkeeper: all waves are held %s: image %s is asked for after wave release --all (wave cancel %s ends the waiting)\n",
		listing.Visible(word.String()), c.Image, id)
}

// tellPaused says that an operator has paused the image.
func (c ImageBuildCmd) tellPaused(ctx context.Context, a *app.App, store *zkmodel.Store) error {
	paused, err := store.ImagePaused(ctx, c.Image)
	if err == nil && paused {
		fmt.Fprintf(a.Stderr, "poolkeeper: image %s is paused; it will be built when it is unpaused (image-unpause)\n", c.Image)
	}
	return err
}

// wave is the wave of one image that asks for the build.
func (c ImageBuildCmd) wave() *wave.Wave {
	w := &wave.Wave{
		ID: newWaveID("-" + c.Image), Reason: "image-build", By: app.Requestor(), Order: wave.ByPriority,
		Until: wave.UntilUploaded, MaxFailures: wave.DefaultMaxFailures,
	}
	if wave.CheckID(w.ID) != nil { // a name may have what an id may not
		w.ID = newWaveID("")
	}
	return w
}

// await asks for the build by a wave of one image, and waits for its report. Outside of
// the image's build windows, the wave asks for the build once one begins.
func (c ImageBuildCmd) await(ctx context.Context, a *app.App, t waveTools, window time.Time) error {
	w, job := c.wave(), waves.Job(t.cfg, c.Image)
	image, err := t.models.Image(ctx, c.Image)
	if errors.Is(err, zkmodel.ErrNotFound) {
		image, err = &zkmodel.Image{}, nil
	}
	if err != nil {
		return err
	}
	word, held, err := t.store.AllHeld(ctx)
	switch {
	case err != nil:
		return err
	case held:
		c.tellHeld(a, word, w.ID)
		_, err = t.store.Create(ctx, w, []wave.Job{job})
	case window.After(time.Now()):
		fmt.Fprintf(a.Stderr, "poolkeeper: the next build window of image %s begins at %s (wave cancel %s ends the waiting)\n",
			c.Image, window.UTC().Format(time.RFC3339), w.ID)
		_, err = t.store.Create(ctx, w, []wave.Job{job})
	default:
		err = t.store.Ask(ctx, w, job)
	}
	if err != nil {
		return err
	}
	t.tellUndriven(ctx, a)
	if err := c.tellPaused(ctx, a, t.models); err != nil {
		return err
	}
	end := c.follow(t.outer, a, t, newest(image))       //nolint:contextcheck // outlives a session
	report, err := awaitReport(t.outer, t.client, w.ID) //nolint:contextcheck // as above
	end()
	if err != nil {
		return err
	}
	return tellReport(a, app.OutputFlags{Output: "table"}, report)
}

// ImagePauseCmd sets an image's pause flag.
type ImagePauseCmd struct {
	app.HaltFlags
	Image string `arg:"" help:"The image."`
}

// Run is the command.
func (c ImagePauseCmd) Run(ctx context.Context, a *app.App) error {
	return withImage(ctx, a, c.Image, func(ctx context.Context, store *zkmodel.Store) error {
		p, err := app.Operator(store).Pause(ctx, c.Image, c.Reason, c.For.Duration())
		if err != nil || c.HaltFlags == (app.HaltFlags{}) { // then as silent as Nodepool's
			return err
		}
		told := zkmodel.FlagPause{Pause: p}
		fmt.Fprintf(a.Stdout, "image %s is %s\n", c.Image, listing.Visible(told.Text()))
		c.TellUnended(ctx, a, store)
		return nil
	})
}

// ImageUnpauseCmd clears an image's pause flag.
type ImageUnpauseCmd struct {
	Image string `arg:"" help:"The image."`
}

// Run is the command.
func (c ImageUnpauseCmd) Run(ctx context.Context, a *app.App) error {
	return withImage(ctx, a, c.Image, func(ctx context.Context, store *zkmodel.Store) error {
		return app.Operator(store).Unpause(ctx, c.Image)
	})
}

// withImage runs change on an image that is configured, or was once built.
func withImage(ctx context.Context, a *app.App, name string, change func(context.Context, *zkmodel.Store) error) error {
	if err := configs.CheckName("image", name); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		if _, unknown := configured(cfg, name); unknown != nil {
			_, err := store.Image(ctx, name)
			if errors.Is(err, zkmodel.ErrNotFound) {
				return unknown
			}
			if err != nil {
				return err
			}
		}
		return change(ctx, store)
	})
}

// configured finds an image of the configuration; the error names the one that may have
// been meant.
func configured(cfg *configs.Config, name string) (configs.DiskImage, error) {
	var names []string
	for _, image := range cfg.DiskImages {
		if image.Name == name {
			return image, nil
		}
		names = append(names, image.Name)
	}
	return configs.DiskImage{}, fmt.Errorf("image %q is not in %s%s", name, cfg.Path, configs.Similar(name, names))
}

// DIBImageDeleteCmd marks a build for deletion.
type DIBImageDeleteCmd struct {
	Pause  bool   `help:"Pause the image first, so that the build before this one stays in use."`
	Broken bool   `help:"Also a build whose record cannot be decoded, which no daemon deletes."`
	ID     string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`
}

// Run is the command.
func (c DIBImageDeleteCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := zkmodel.ParseBuildName(c.ID)
	if err != nil {
		return err
	}
	if err := errors.Join(configs.CheckName("image", image), configs.CheckName("build", build)); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		err := app.Operator(store).DeleteBuild(ctx, image, build, operate.Deletion{Broken: c.Broken, Pause: c.Pause})
		return inNodepoolsWords(err, "Build "+c.ID+" not found", "Cannot delete a build in progress")
	})
}

// ImageDeleteCmd marks an upload for deletion.
type ImageDeleteCmd struct {
	Broken   bool   `help:"Also an upload whose record cannot be decoded, which no daemon deletes."`
	Provider string `required:"" help:"The provider that has the image."`
	Image    string `required:"" help:"The image."`
	BuildID  string `required:"" help:"The build's id, as image-list shows it."`
	UploadID string `required:"" help:"The upload's id, as image-list shows it."`
}

// Run is the command.
func (c ImageDeleteCmd) Run(ctx context.Context, a *app.App) error {
	err := errors.Join(
		configs.CheckName("provider", c.Provider), configs.CheckName("image", c.Image),
		configs.CheckName("build", c.BuildID), configs.CheckName("upload", c.UploadID))
	if err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		err := app.Operator(store).DeleteUpload(ctx, zkmodel.UploadKey{
			Image: c.Image, Build: c.BuildID, Provider: c.Provider, ID: c.UploadID,
		}, operate.Deletion{Broken: c.Broken})
		if err != nil {
			return inNodepoolsWords(err, "Image upload not found", "Cannot delete because image upload in progress")
		}
		return tellUnserved(ctx, a, store, c.Provider)
	})
}

// tellUnserved says that nobody does what was just asked for, as no builder has the
// provider.
func tellUnserved(ctx context.Context, a *app.App, store *zkmodel.Store, provider string) error {
	serving, err := store.ServingImages(ctx, provider)
	if err == nil && len(serving) == 0 {
		fmt.Fprintf(a.Stderr, "poolkeeper: no builder that runs has provider %s: the upload is marked, and goes when one does; "+
			"erase %s forgets the records of a provider that is gone for good\n", provider, provider)
	}
	return err
}

// inNodepoolsWords keeps the messages that scripts know. They were exit code 0
// there; here they are failures, as nothing was done.
func inNodepoolsWords(err error, notFound, inProgress string) error {
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return errors.New(notFound)
	case errors.Is(err, zkmodel.ErrInProgress):
		return errors.New(inProgress)
	}
	return err
}
