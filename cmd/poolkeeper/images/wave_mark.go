package images

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// waveTarget is a wave, or one job of it.
type waveTarget struct {
	ID    string `arg:"" help:"The wave."`
	Image string `arg:"" optional:"" help:"Only the job of this image."`
}

// waveOrAll is a wave, one job of it, or all waves.
type waveOrAll struct {
	All   bool   `help:"All waves, also those that are still to be made, and requests of image-build."`
	ID    string `arg:"" optional:"" help:"The wave."`
	Image string `arg:"" optional:"" help:"Only the job of this image."`
}

var errWhichWave = errors.New("expected the id of a wave, or --all")

// marked finds the mark of a target, and checks that there is such a job.
func (t waveTools) marked(ctx context.Context, e *wave.Entry, mark wave.Mark, image string) (wave.Mark, error) {
	if image == "" {
		return mark, nil
	}
	jobs, err := t.store.Jobs(ctx, e.ID)
	if err != nil {
		return "", err
	}
	var names []string
	for _, job := range jobs {
		if job.Image == image {
			return mark.Of(image), nil
		}
		names = append(names, job.Image)
	}
	return "", fmt.Errorf("wave %s has no image %q%s", e.ID, image, configs.Similar(image, names))
}

// changeable refuses what is to be done with a wave, or the job of an image, that is over,
// follows a request, or is not there.
func (t waveTools) changeable(ctx context.Context, e *wave.Entry, verb, image string) error {
	if e.Status.State.Over() {
		return fmt.Errorf("wave %s is over: %s", e.ID, e.Status.State)
	}
	if e.Follow {
		return fmt.Errorf("%s wave %s: %w", verb, e.ID, wave.ErrFollows)
	}
	_, err := t.marked(ctx, e, wave.MarkHold, image)
	return err
}

// waveHoldCmd holds.
type waveHoldCmd struct {
	app.HaltFlags
	waveOrAll
}

// Run is the command.
func (c waveHoldCmd) Run(ctx context.Context, a *app.App) error {
	if c.All == (c.ID != "") {
		return errWhichWave
	}
	if c.All {
		return withWaves(ctx, a, func(ctx context.Context, t waveTools) error { return c.hold(ctx, a, t) })
	}
	return withWave(ctx, a, c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if err := t.changeable(ctx, e, "hold", c.Image); err != nil {
			return err
		}
		return c.hold(ctx, a, t)
	})
}

// hold holds what the command names.
func (c waveHoldCmd) hold(ctx context.Context, a *app.App, t waveTools) error {
	p, err := app.Operator(t.models).Halt(ctx, c.Reason, c.For.Duration())
	if err != nil {
		return err
	}
	word := wave.Word{By: p.By, Reason: p.Reason}
	if end := p.Ends(); !end.IsZero() {
		end = end.UTC()
		word.Until = &end
	}
	held := wave.Target{ID: c.ID, Image: c.Image}
	if err := t.store.Hold(ctx, held, word); err != nil || c.For == 0 {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: held %s\n", held, listing.Visible(word.String()))
	c.TellUnended(ctx, a, t.models)
	return nil
}

// waveReleaseCmd takes back what holds.
type waveReleaseCmd struct{ waveOrAll }

// Run is the command.
func (c waveReleaseCmd) Run(ctx context.Context, a *app.App) error {
	if c.All == (c.ID != "") {
		return errWhichWave
	}
	if c.All {
		return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
			return t.store.Release(ctx, wave.Target{}, wave.Word{By: app.Requestor()}, nil)
		})
	}
	return withWave(ctx, a, c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if _, err := t.marked(ctx, e, wave.MarkHold, c.Image); err != nil {
			return err
		}
		return t.store.Release(ctx, wave.Target{ID: c.ID, Image: c.Image}, wave.Word{By: app.Requestor()}, nil)
	})
}

// waveCancelCmd ends a wave.
type waveCancelCmd struct {
	Reason string `help:"Why, for those who see it."`
	Builds bool   `help:"Also give up the builds under way that the wave has asked for; with an image, any build of that, also one that others have asked for."`
	waveTarget
}

// Run is the command.
func (c waveCancelCmd) Run(ctx context.Context, a *app.App) error {
	return withWave(ctx, a, c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if e.Status.State.Over() {
			return fmt.Errorf("wave %s is over: %s", e.ID, e.Status.State)
		}
		mark, err := t.marked(ctx, e, wave.MarkCancel, c.Image)
		if err != nil {
			return err
		}
		var builds []wave.Running
		if c.Builds { // before the requests for them are withdrawn
			if builds, err = t.store.Running(ctx, t.models, e, c.Image); err != nil {
				return err
			}
		}
		if err := t.store.Set(ctx, c.ID, mark, wave.Word{By: app.Requestor(), Reason: c.Reason}); err != nil {
			return err
		}
		return c.giveUp(ctx, a, t, builds)
	})
}

// giveUp cancels the builds that the wave has asked for, or that are named.
func (c waveCancelCmd) giveUp(ctx context.Context, a *app.App, t waveTools, builds []wave.Running) error {
	var failed error
	for _, b := range builds {
		if !b.Asked && c.Image == "" {
			fmt.Fprintf(a.Stdout, "Build %s-%s goes on: the wave has not asked for it; image-build-cancel %[1]s gives it up\n", b.Image, b.Build)
			continue
		}
		if err := t.models.CancelBuildOf(ctx, b.Image, b.Build); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(a.Stdout, "Build %s-%s is being cancelled\n", b.Image, b.Build)
	}
	return failed
}

// wavePriorityCmd changes a priority.
type wavePriorityCmd struct {
	Reason   string `help:"Why, for those who see it."`
	ID       string `arg:"" help:"The wave."`
	Priority string `arg:"" enum:"high,normal,low" help:"high, normal or low."`
	Image    string `arg:"" optional:"" help:"Only the job of this image, among the jobs of the wave."`
}

// Run is the command.
func (c wavePriorityCmd) Run(ctx context.Context, a *app.App) error {
	return withWave(ctx, a, c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if err := t.changeable(ctx, e, "prioritize", c.Image); err != nil {
			return err
		}
		return t.store.Prioritize(ctx, c.ID, c.Image, wave.Word{By: app.Requestor(), Reason: c.Reason, Priority: wave.Priority(c.Priority)})
	})
}

// waveRetryCmd tries again what has failed.
type waveRetryCmd struct{ waveTarget }

// Run is the command.
func (c waveRetryCmd) Run(ctx context.Context, a *app.App) error {
	return withWave(ctx, a, c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if _, err := t.marked(ctx, e, wave.MarkRetry, c.Image); err != nil {
			return err
		}
		if n := e.Status.Counts[wave.Failed] + e.Status.Counts[wave.Cancelled]; n == 0 {
			return fmt.Errorf("wave %s has no failed and no cancelled job", c.ID)
		}
		return t.store.Retry(ctx, c.ID, c.Image, wave.Word{By: app.Requestor()})
	})
}

// waveDeleteCmd deletes waves.
type waveDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The waves."`
}

// Run is the command.
func (c waveDeleteCmd) Run(ctx context.Context, a *app.App) error {
	for _, id := range c.IDs {
		if err := wave.CheckID(id); err != nil {
			return err
		}
	}
	return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
		var failed error
		for _, id := range c.IDs {
			err := t.store.Delete(ctx, id, wave.Word{By: app.Requestor()})
			switch {
			case errors.Is(err, zkmodel.ErrNotFound):
				err = t.unknown(ctx, id)
			case errors.Is(err, recipe.ErrLocked):
				err = fmt.Errorf("wave %s is being driven; try again in a moment", id)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	})
}
