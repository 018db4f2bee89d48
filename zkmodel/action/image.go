package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/wave"
)

// Buildable finds an image of the configuration that may be built.
//
// Errors: it is not configured, with the one that may have been meant; it is paused there.
func Buildable(cfg *configs.Config, name string) (configs.DiskImage, error) {
	image, err := configured(cfg, name)
	if err == nil && image.Pause {
		err = fmt.Errorf("image %s is paused in %s", name, cfg.Path)
	}
	return image, err
}

// build asks for a build.
func (d *Doer) build(ctx context.Context, o Order) error {
	image, err := Buildable(d.Config, o.Image)
	if err != nil {
		return err
	}
	window := image.NextWindow(clock.Now(ctx))
	held, err := d.ask(ctx, o.Image)
	if err != nil || held {
		return err
	}
	if window.After(clock.Now(ctx)) {
		d.notef("image %s is built although its next build window begins at %s (with --wait, it waits for that)", o.Image, window.UTC().Format(time.RFC3339))
	}
	d.noteUnbuilt(ctx, o.Image)
	return d.NotePaused(ctx, o.Image)
}

// noteUnbuilt tells that no builder runs that could build an image.
func (d *Doer) noteUnbuilt(ctx context.Context, image string) {
	builders, err := d.Store.Components(ctx, zkmodel.KindBuilder)
	if err != nil {
		d.notef("cannot tell who builds the image: %v", err)
		return
	}
	if why := zkmodel.NoBuilder(builders); why != "" {
		d.notef("%s; image %s is built when one does", why, image)
	}
}

// ask asks for the build. Where a builder is there that works at waves, it makes a job,
// too, so that what has come of it is told. It reports whether the job waits since all waves
// are held.
func (d *Doer) ask(ctx context.Context, image string) (held bool, err error) {
	builders, err := d.Store.Components(ctx, zkmodel.KindBuilder)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(builders, (*zkmodel.Component).Heeds) {
		_, err := d.operator().RequestBuild(ctx, image)
		return false, err
	}
	waves, w := wave.NewStore(d.Store.Session()), d.Wave(image)
	w.Follow = true
	word, held, err := waves.AllHeld(ctx)
	if err != nil {
		return false, err
	}
	if w.Unasked = held; held {
		there, err := waves.Unasked(ctx, image)
		if err == nil && len(there) == 0 { // else that one asks
			there = []string{w.ID}
			_, err = waves.Create(ctx, w, []wave.Job{d.Job(d.Config, image)})
		}
		if err == nil {
			d.NoteHeld(image, word, there[0])
		}
		return true, err
	}
	return false, waves.Ask(ctx, w, d.Job(d.Config, image))
}

// Wave is the wave of one image that asks for its build.
func (d *Doer) Wave(image string) *wave.Wave {
	w := &wave.Wave{
		ID: wave.NewID("-" + image), Reason: "image-build", By: d.Who, Order: wave.ByPriority,
		Until: wave.UntilUploaded, MaxFailures: wave.DefaultMaxFailures,
	}
	if wave.CheckID(w.ID) != nil { // a name may have what an id may not
		w.ID = wave.NewID("")
	}
	return w
}

// NoteHeld tells that all waves are held, and which wave asks for the build once they are not.
func (d *Doer) NoteHeld(image string, word wave.Word, id string) {
	d.notef("all waves are held %s: image %s is asked for after wave release --all (wave cancel %s ends the waiting)", word.String(), image, id)
}

// NotePaused tells that an operator has paused an image.
func (d *Doer) NotePaused(ctx context.Context, image string) error {
	paused, err := d.Store.ImagePaused(ctx, image)
	if err == nil && paused {
		d.notef("image %s is paused; it will be built when it is unpaused (image-unpause)", image)
	}
	return err
}

// cancelBuild gives up a build that is under way, or else the request for one.
func (d *Doer) cancelBuild(ctx context.Context, o Order) error {
	done, err := d.operator().CancelBuild(ctx, o.Image)
	switch {
	case err != nil && ctx.Err() == nil:
		if unknown := d.known(ctx, o.Image); unknown != nil {
			return unknown
		}
	case done.Build != "":
		d.sayf("Build %s-%s is being cancelled", o.Image, done.Build)
	case err == nil && len(done.Waves) > 0:
		d.sayf("The request for a build of %s is withdrawn; cancelled with it: wave %s", o.Image, strings.Join(done.Waves, ", wave "))
	case err == nil:
		d.sayf("The request for a build of %s is withdrawn", o.Image)
	}
	if done.Again {
		d.notef("another build of %s was asked for since; once this one has ended, image-build-cancel withdraws that", o.Image)
	}
	return err
}

// pauseImage stops builds of an image. Without time and reason it is as silent as Nodepool's.
func (d *Doer) pauseImage(ctx context.Context, o Order) error {
	if err := d.known(ctx, o.Image); err != nil {
		return err
	}
	p, err := d.operator().Pause(ctx, o.Image, o.Reason, o.For)
	if err != nil || o.Reason == "" && o.For == 0 {
		return err
	}
	told := zkmodel.FlagPause{Pause: p}
	d.sayf("image %s is %s", o.Image, told.Text())
	d.noteUnended(ctx, o.For)
	return nil
}

func (d *Doer) unpauseImage(ctx context.Context, o Order) error {
	if err := d.known(ctx, o.Image); err != nil {
		return err
	}
	return d.operator().Unpause(ctx, o.Image)
}

// known refuses an image that is not configured and was never built.
func (d *Doer) known(ctx context.Context, name string) error {
	_, unknown := configured(d.Config, name)
	if unknown == nil {
		return nil
	}
	_, err := d.Store.Image(ctx, name)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return unknown
	}
	return err
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

func (d *Doer) deleteBuild(ctx context.Context, o Order) error {
	err := d.operator().DeleteBuild(ctx, o.Image, o.Build, operate.Deletion{Broken: o.Broken, Pause: o.Pause})
	return InNodepoolsWords(err, "Build "+o.Image+"-"+o.Build+" not found", "Cannot delete a build in progress")
}

func (d *Doer) deleteUpload(ctx context.Context, o Order) error {
	err := d.operator().DeleteUpload(ctx, zkmodel.UploadKey{
		Image: o.Image, Build: o.Build, Provider: o.Provider, ID: o.Upload,
	}, operate.Deletion{Broken: o.Broken})
	if err != nil {
		return InNodepoolsWords(err, "Image upload not found", "Cannot delete because image upload in progress")
	}
	serving, err := d.Store.ServingImages(ctx, o.Provider)
	if err == nil && len(serving) == 0 {
		d.notef("no builder that runs has provider %s: the upload is marked, and goes when one does; "+
			"erase %s forgets the records of a provider that is gone for good", o.Provider, o.Provider)
	}
	return err
}

// InNodepoolsWords keeps the messages that scripts know. They were exit code 0
// there; here they are failures, as nothing was done.
func InNodepoolsWords(err error, notFound, inProgress string) error {
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return inWords{notFound, zkmodel.ErrNotFound}
	case errors.Is(err, zkmodel.ErrInProgress):
		return errors.New(inProgress)
	}
	return err
}

// inWords is an error in other words.
type inWords struct {
	text string
	is   error
}

func (e inWords) Error() string { return e.text }
func (e inWords) Unwrap() error { return e.is }
