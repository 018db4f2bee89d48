package images

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

// places are the providers that a command is about.
type places struct {
	Provider []string `placeholder:"PROVIDER" help:"Only in this provider; may be given more than once."`
}

func (p places) check() error {
	var all error
	for _, name := range p.Provider {
		all = errors.Join(all, configs.CheckName("provider", name))
	}
	return all
}

// ImageRollbackCmd takes an image back to the build before.
type ImageRollbackCmd struct {
	places
	Build   string `placeholder:"BUILDID" help:"The bad build; by default the newest that serves."`
	Pin     bool   `help:"Keep what serves then until it is released; without it the next build serves."`
	Release bool   `help:"Only release what is pinned."`
	Delete  bool   `help:"Delete the bad build's images in the clouds, so that launchers leave it which know no rollback."`
	Reason  string `placeholder:"TEXT" help:"Why, for all to see."`
	Image   string `arg:"" help:"The image."`
}

// Help is what the command's own help says.
func (*ImageRollbackCmd) Help() string {
	return "Marks the newest build that serves as bad; the one before serves, in all launchers at once. Idle ready nodes " +
		"of the bad build are deleted, those in use stay. The bad build is not uploaded there again; the next build comes " +
		"by schedule or request. image-promote takes it back."
}

// Run is the command.
func (c ImageRollbackCmd) Run(ctx context.Context, a *app.App) error {
	err := errors.Join(configs.CheckName("image", c.Image), c.check())
	if c.Build != "" {
		err = errors.Join(err, configs.CheckName("build", c.Build))
	}
	if c.Release && (c.Pin || c.Delete || c.Build != "" || c.Reason != "") {
		err = errors.Join(err, errors.New("--release goes with --provider alone"))
	}
	if err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		if c.Release {
			return c.release(ctx, a, store)
		}
		return judge(ctx, a, cfg, store, operate.Judgement{
			Image: c.Image, Build: c.Build, Providers: c.Provider, Kind: zkmodel.RolledBack, Pin: c.Pin, Delete: c.Delete, Reason: c.Reason,
		})
	})
}

func (c ImageRollbackCmd) release(ctx context.Context, a *app.App, store *zkmodel.Store) error {
	released, err := app.Operator(store).Release(ctx, c.Image, c.Provider)
	for _, pin := range released {
		fmt.Fprintf(terminal.Visible(a.Stdout), "%s in %s: build %s is released; the newest build serves that is neither rolled back nor rejected\n",
			c.Image, pin.Provider, pin.Build)
	}
	return err
}

// ImageRejectCmd says that a build is not to serve.
type ImageRejectCmd struct {
	places
	Delete bool   `help:"Delete its images in the clouds, so that launchers leave it which know no rejection."`
	Reason string `placeholder:"TEXT" help:"Why, for all to see."`
	ID     string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`
}

// Run is the command.
func (c ImageRejectCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := c.parse(c.ID)
	if err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		return judge(ctx, a, cfg, store, operate.Judgement{
			Image: image, Build: build, Providers: c.Provider, Kind: zkmodel.Rejected, Delete: c.Delete, Reason: c.Reason,
		})
	})
}

// parse reads the name of a build, and checks all names.
func (p places) parse(id string) (image, build string, err error) {
	if image, build, err = zkmodel.ParseBuildName(id); err != nil {
		return "", "", err
	}
	return image, build, errors.Join(configs.CheckName("image", image), configs.CheckName("build", build), p.check())
}

// ImagePromoteCmd takes back what was said of a build.
type ImagePromoteCmd struct {
	places
	ID string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`
}

// Run is the command.
func (c ImagePromoteCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := c.parse(c.ID)
	if err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		tried, err := app.Operator(store).PromoteTrials(ctx, image, build, c.Provider)
		for _, one := range tried {
			what := "serves without more ado; its trial is over"
			if one.Canary {
				what = "waits no more: it is promoted, and serves all new nodes once its builder has made it ready"
			}
			fmt.Fprintf(terminal.Visible(a.Stdout), "%s in %s: build %s %s\n", image, one.Provider, build, what)
		}
		if err != nil && !errors.Is(err, zkmodel.ErrNotFound) {
			return err
		}
		where, err := app.Operator(store).Promote(ctx, image, build, c.Provider)
		if len(tried) > 0 && errors.Is(err, zkmodel.ErrNotFound) {
			return nil // nothing more was to be done
		}
		for _, one := range where {
			what := "may serve again"
			if one.Canary {
				what = "is promoted: it serves all new nodes"
			}
			fmt.Fprintf(terminal.Visible(a.Stdout), "%s in %s: build %s %s\n", image, one.Provider, build, what)
		}
		return err
	})
}

// judge carries a judgement out, and tells what serves, and who goes on as before.
func judge(ctx context.Context, a *app.App, cfg *configs.Config, store *zkmodel.Store, j operate.Judgement) error {
	for _, p := range cfg.ProvidersOf(j.Image) {
		j.Listed = append(j.Listed, p.Name)
	}
	op := app.Operator(store)
	all, err := op.Judge(ctx, j)
	if errors.Is(err, zkmodel.ErrNotFound) && len(all) == 0 {
		return fmt.Errorf("%w; dib-image-list shows the builds", err)
	}
	if err != nil {
		return err
	}
	out := terminal.Visible(a.Stdout)
	pinned := false
	for _, one := range all {
		fmt.Fprintf(out, "%s in %s: %s\n", j.Image, one.Provider, outcome(j, one))
		pinned = pinned || one.Pin != nil
	}
	tellDeaf(a, j, all)
	return tellDeafBuilders(ctx, a, op, j, pinned)
}

// outcome says what a judgement led to in a provider.
func outcome(j operate.Judgement, one operate.Judged) string {
	said := "is " + strings.ReplaceAll(string(j.Kind), "-", " ")
	if one.Before != nil {
		said = "was " + one.Before.Text() + " already"
	}
	text := "build " + one.Build + " " + said
	if len(one.Uploads) == 0 {
		text += ", and is not sent there"
	}
	switch {
	case one.Serves == nil:
		text += "; no build has served there yet"
	case one.Pin != nil:
		text += "; build " + one.Serves.Build + " serves, pinned until image-rollback --release"
	default:
		text += "; build " + one.Serves.Build + " serves"
	}
	return text
}

// tellDeaf tells of launchers that go on with another build than the one that serves.
func tellDeaf(a *app.App, j operate.Judgement, all []operate.Judged) {
	for _, one := range all {
		for _, c := range one.Deaf {
			hint := "--delete takes the build out of its reach"
			if j.Delete || one.Pin != nil {
				hint = "it takes the newest build that is ready"
			}
			fmt.Fprintf(terminal.Visible(a.Stderr), "poolkeeper: the launcher on %s (pool %s of %s) knows no verdicts and does not heed this: %s\n",
				c.Hostname, c.PoolName, one.Provider, hint)
		}
	}
}

// tellDeafBuilders tells of builders that do not keep what is pinned, or send again what
// was deleted.
func tellDeafBuilders(ctx context.Context, a *app.App, op *operate.Operator, j operate.Judgement, pinned bool) error {
	if !pinned && !j.Delete {
		return nil
	}
	deaf, err := op.DeafBuilders(ctx)
	for _, c := range deaf {
		if pinned {
			fmt.Fprintf(terminal.Visible(a.Stderr), "poolkeeper: the builder on %s knows no pins: it deletes the pinned build when two newer uploads are ready\n", c.Hostname)
		}
		if j.Delete {
			fmt.Fprintf(terminal.Visible(a.Stderr), "poolkeeper: the builder on %s knows no verdicts: if it has the files of the build, it may upload it again, until a newer one is ready\n", c.Hostname)
		}
	}
	return err
}
