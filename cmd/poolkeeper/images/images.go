// Package images has the commands about images: asking for builds and waves of them, their
// listings and logs, pausing, rolling back, deleting, and explaining.
package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
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
	if !c.Wait && !c.Follow {
		return a.Do(ctx, action.Order{Action: "image-build", Image: c.Image})
	}
	if err := configs.CheckName("image", c.Image); err != nil {
		return err
	}
	return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
		image, err := action.Buildable(t.cfg, c.Image)
		if err != nil {
			return err
		}
		return c.await(ctx, a, t, image.NextWindow(time.Now()))
	})
}

// await asks for the build by a wave of one image, and waits for its report. Outside of
// the image's build windows, the wave asks for the build once one begins.
func (c ImageBuildCmd) await(ctx context.Context, a *app.App, t waveTools, window time.Time) error {
	d := a.Doer(t.cfg, t.models)
	w, job := d.Wave(c.Image), d.Job(t.cfg, c.Image)
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
		d.NoteHeld(c.Image, word, w.ID)
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
	if err := d.NotePaused(ctx, c.Image); err != nil {
		return err
	}
	end := c.follow(t.outer, a, t, newest(image))       //nolint:contextcheck // outlives a session
	report, err := awaitReport(t.outer, t.client, w.ID) //nolint:contextcheck // as above
	end()
	if err != nil {
		return err
	}
	return tellReport(a, view.Forms{Output: "table"}, report)
}

// ImagePauseCmd sets an image's pause flag.
type ImagePauseCmd struct {
	app.HaltFlags
	Image string `arg:"" help:"The image."`
}

// Run is the command.
func (c ImagePauseCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, action.Order{Action: "image-pause", Image: c.Image, Reason: c.Reason, For: c.For.Duration()})
}

// ImageUnpauseCmd clears an image's pause flag.
type ImageUnpauseCmd struct {
	Image string `arg:"" help:"The image."`
}

// Run is the command.
func (c ImageUnpauseCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, action.Order{Action: "image-unpause", Image: c.Image})
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
	return a.Do(ctx, action.Order{Action: "dib-image-delete", Image: image, Build: build, Broken: c.Broken, Pause: c.Pause})
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
	return a.Do(ctx, action.Order{
		Action: "image-delete", Image: c.Image, Build: c.BuildID, Provider: c.Provider, Upload: c.UploadID, Broken: c.Broken,
	})
}
