package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/builder/waves"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// WaveCmd are the commands about waves.
type WaveCmd struct {
	Create   waveCreateCmd   `cmd:"" help:"Have many images built anew."`
	List     waveListCmd     `cmd:"" help:"List the waves."`
	Show     waveShowCmd     `cmd:"" help:"Show a wave and its jobs, or its report."`
	Hold     waveHoldCmd     `cmd:"" help:"Let no more jobs of a wave, or of all, begin."`
	Release  waveReleaseCmd  `cmd:"" help:"Let a wave that is held go on."`
	Priority wavePriorityCmd `cmd:"" help:"Change the priority of a wave among waves, or of one job of it among its jobs."`
	Cancel   waveCancelCmd   `cmd:"" help:"End a wave, or one job of it."`
	Retry    waveRetryCmd    `cmd:"" help:"Try the failed and cancelled jobs of a wave again."`
	Delete   waveDeleteCmd   `cmd:"" help:"Delete waves that are over."`
}

// waveCreateCmd makes a wave.
type waveCreateCmd struct {
	All         bool     `xor:"images" required:"" help:"All images of the configuration."`
	Match       []string `xor:"images" required:"" placeholder:"PATTERN" help:"Images like this, as in a shell: 'debian-*'. May be given again."`
	Reason      string   `help:"Why, for those who see it."`
	At          string   `placeholder:"TIME" help:"Begin then: 2026-03-01T22:00:00Z, or in 8h."`
	Order       string   `enum:"freshness,priority" default:"freshness" help:"Which images come first: freshness, whose newest build is the oldest; priority, as --match and then the configuration has them (${default})."`
	Priority    string   `enum:"high,normal,low" default:"normal" help:"Among waves: while images of a higher one wait for a builder, a lower one asks for no builds (${default})."`
	MaxParallel int      `default:"10" help:"How many builds are asked for at once; 0 is no limit (${default})."`
	Until       string   `enum:"built,uploaded,validated" default:"uploaded" help:"When an image is done: built, uploaded, or validated, for images with validate (${default})."`
	MaxFailures string   `default:"20%" placeholder:"N|%" help:"How many images may fail before the rest is held (${default})."`
	ID          string   `name:"id" help:"The wave's id. With one that there is, of the same images, nothing is made."`
	Wait        bool     `help:"Wait for the report, and print it. Exit code 1 unless all is completed."`
	view.Forms
}

// Run is the command.
func (c waveCreateCmd) Run(ctx context.Context, a *app.App) error {
	w := &wave.Wave{
		ID: c.ID, Reason: c.Reason, By: app.Requestor(), Order: wave.Order(c.Order), Priority: wave.Priority(c.Priority), MaxParallel: c.MaxParallel,
		Until: wave.Until(c.Until), MaxFailures: c.MaxFailures,
	}
	if w.ID == "" {
		w.ID = wave.NewID("")
	}
	if c.At != "" {
		at, err := parseAt(c.At, time.Now())
		if err != nil {
			return err
		}
		w.At = &at
	}
	if err := w.Check(); err != nil {
		return err
	}
	return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
		images, err := t.models.Images(ctx)
		if err != nil {
			return err
		}
		wish := waves.Wish{All: c.All, Match: c.Match, Order: w.Order, Until: w.Until}
		jobs, err := waves.Jobs(t.cfg, wish, func(image string) int64 { return newestReady(images, image) })
		if err != nil {
			return err
		}
		made, err := t.store.Create(ctx, w, jobs)
		if err != nil {
			return err
		}
		if !made {
			if err := t.store.SameImages(ctx, w.ID, jobs); err != nil {
				return err
			}
			fmt.Fprintf(a.Stderr, "poolkeeper: wave %s is there already; nothing is made\n", w.ID)
		}
		t.tellUndriven(ctx, a)
		if !c.Wait {
			_, err = fmt.Fprintln(a.Stdout, w.ID)
			return err
		}
		fmt.Fprintf(a.Stderr, "poolkeeper: waiting for wave %s, of %d images\n", w.ID, len(jobs))
		return awaitWave(t.outer, a, t.client, w.ID, c.Forms) //nolint:contextcheck // outlives a session
	})
}

// parseAt reads a time, or a duration from now.
func parseAt(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--at %q: expected a time as 2026-03-01T22:00:00Z, or a duration as 8h", text)
	}
	return at, nil
}

// newestReady is when the newest ready build of an image began.
func newestReady(images []*zkmodel.Image, name string) int64 {
	at := slices.IndexFunc(images, func(i *zkmodel.Image) bool { return i.Name == name })
	if at < 0 {
		return 0
	}
	return waves.NewestReady(images[at])
}

// waveTools is what the commands work with.
type waveTools struct {
	outer  context.Context //nolint:containedctx // outlives the session
	client *recipe.Client
	cfg    *configs.Config
	models *zkmodel.Store
	store  *wave.Store
}

// withWaves runs a command's body on the tree.
func withWaves(ctx context.Context, a *app.App, body func(context.Context, waveTools) error) error {
	return a.WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, models *zkmodel.Store) error {
		return body(bound, waveTools{ctx, client, cfg, models, wave.NewStore(models.Session())})
	})
}

// tellUndriven says that no builder is there that would drive a wave.
func (t waveTools) tellUndriven(ctx context.Context, a *app.App) {
	builders, err := t.models.Components(ctx, zkmodel.KindBuilder)
	if err == nil && len(builders) == 0 {
		fmt.Fprintln(a.Stderr, "poolkeeper: no builder runs; the wave begins when one does")
	}
}

// awaitWave waits for a wave's report, over as many sessions as that takes, and prints it.
func awaitWave(ctx context.Context, a *app.App, client *recipe.Client, id string, out view.Forms) error {
	report, err := awaitReport(ctx, client, id)
	if err != nil {
		return err
	}
	return tellReport(a, out, report)
}

// awaitReport waits for a wave's report.
func awaitReport(ctx context.Context, client *recipe.Client, id string) (*wave.Report, error) {
	for {
		session, err := client.Session(ctx)
		if err != nil {
			return nil, err
		}
		data, err := wave.NewStore(session).Queue().Wait(ctx, id, app.Requestor())
		switch {
		case errors.Is(err, recipe.ErrSessionLost):
			continue
		case errors.Is(err, recipe.ErrNoNode):
			return nil, fmt.Errorf("wave %s is gone, without a report", id)
		case err != nil:
			return nil, err
		}
		return wave.ParseReport(data)
	}
}

// tellReport prints a report; a wave that is not completed is an error.
func tellReport(a *app.App, out view.Forms, report *wave.Report) error {
	if err := printReport(a, out, report); err != nil {
		return err
	}
	if report.State != wave.Completed {
		return fmt.Errorf("wave %s is %s", report.ID, report.State)
	}
	return nil
}

// printReport prints what has come of a wave.
func printReport(a *app.App, o view.Forms, r *wave.Report) error {
	document := struct {
		view.Head
		Report *wave.Report `json:"report"`
	}{view.HeadOf("wave-report"), r}
	if printed, err := (view.Report{Output: o.Output}).Document(a.Stdout, r, document); printed {
		return err
	}
	table := listing.WaveReport(r)
	if o.Output == "name" {
		return o.Write(a.Stdout, table)
	}
	fmt.Fprintf(a.Stdout, "Wave %s is %s: %s\n", r.ID, r.State, counted(r.Counts))
	if took := r.Took.String(); took != "" {
		fmt.Fprintf(a.Stdout, "  took     %s; the estimate was: %s\n", took, cmp.Or(r.Estimate.String(), "none"))
	}
	return o.Write(a.Stdout, table)
}
