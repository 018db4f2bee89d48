package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/manage"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// DaemonCmd is what can be said to running daemons.
type DaemonCmd struct {
	List     daemonListCmd     `cmd:"" help:"List the running daemons: what each does for all, and since when."`
	Who      daemonWhoCmd      `cmd:"" help:"Ask daemons which program and configuration they run."`
	Reload   daemonReloadCmd   `cmd:"" help:"Have daemons read their configuration again, and say whether they take it."`
	LogLevel daemonLogLevelCmd `cmd:"" name:"log-level" help:"Change how much daemons log, until they end."`
	Pause    daemonPauseCmd    `cmd:"" help:"Have daemons begin nothing new: no build, no request."`
	Resume   daemonResumeCmd   `cmd:"" help:"Have daemons that are paused, or drain, go on."`
	Drain    daemonDrainCmd    `cmd:"" help:"Have daemons begin nothing new, and stop when nothing is in hand."`
	Stop     daemonStopCmd     `cmd:"" help:"Have daemons stop now, as a signal does."`
	Dump     daemonDumpCmd     `cmd:"" help:"Have daemons log what each of their goroutines is at."`
}

// daemonListCmd lists daemons, shares and places.
type daemonListCmd struct {
	view.Flags
	view.Watching
	view.ByState
}

// Run is the command.
func (c daemonListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		states := view.States(c.ByState, zkmodel.ComponentStates()...)
		if c.Watch {
			return c.Follow(ctx, a, client, watchedDaemons(cfg), states)
		}
		table, err := daemonTable(bound, cfg, store, time.Now())
		if err != nil {
			return err
		}
		return c.Show(a, table, states)
	})
}

// daemonTable reads the daemons, and their shares and places.
func daemonTable(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, now time.Time) (*listing.Table, error) {
	daemons, err := store.Daemons(ctx)
	if err != nil {
		return nil, err
	}
	places, err := store.Places(ctx, map[string]int{
		zkmodel.BuildLimitPath: cfg.MaxConcurrentBuilds, zkmodel.UploadLimitPath: cfg.MaxConcurrentUploads,
	})
	return listing.Daemons(daemons, places, now), err
}

// watchedDaemons are the daemons, read anew when one comes, changes or goes, and when a share or a place changes hands.
func watchedDaemons(cfg *configs.Config) view.Watched {
	w := view.Watched{
		Parts: zkmodel.PartComponents,
		Read: func(ctx context.Context, _ *zkmodel.Mirror, s *recipe.Session, now time.Time) (*listing.Table, error) {
			return daemonTable(ctx, cfg, zkmodel.NewStore(s, nil), now)
		},
	}
	for _, path := range zkmodel.PlacesPaths() {
		w.Roots = append(w.Roots, view.Root{Path: path})
	}
	return w
}

// toDaemons is to whom a command is given, and how its answers are shown.
type toDaemons struct {
	All     bool          `help:"All builders and launchers."`
	Kind    string        `enum:"any,builder,launcher" default:"any" placeholder:"KIND" help:"Only builders, or only launchers."`
	Timeout time.Duration `default:"30s" help:"How long to wait for answers (${default}); a command that is not answered is taken back."`
	Hosts   []string      `arg:"" optional:"" name:"host" help:"Hosts, or names as daemon list --detail shows them."`
	view.Flags
}

// chosen are those of the running daemons that are meant.
//
// Errors: a host has none of that kind; then the command is given to nobody.
func (t toDaemons) chosen(all []zkmodel.Daemon) ([]zkmodel.Daemon, error) {
	if t.All == (len(t.Hosts) > 0) {
		return nil, errors.New("expected hosts, or --all")
	}
	all = slices.DeleteFunc(all, func(d zkmodel.Daemon) bool { return t.Kind != "any" && d.Kind != t.Kind })
	if t.All {
		if len(all) == 0 {
			return nil, errors.New("--all: no such daemon runs")
		}
		return all, nil
	}
	var chosen []zkmodel.Daemon
	var failed error
	var hosts []string
	for _, d := range all {
		hosts = append(hosts, d.Hostname)
	}
	for _, host := range t.Hosts {
		named := func(d zkmodel.Daemon) bool { return d.Hostname == host || d.Name == host }
		if !slices.ContainsFunc(all, named) {
			failed = errors.Join(failed, fmt.Errorf("host %q: no such daemon runs there%s", host, configs.Similar(host, hosts)))
		}
	}
	for _, d := range all {
		if slices.Contains(t.Hosts, d.Hostname) || slices.Contains(t.Hosts, d.Name) {
			chosen = append(chosen, d)
		}
	}
	return chosen, failed
}

// give gives a command, and shows what each daemon says. With await it waits until they
// have ended, too.
func (t toDaemons) give(ctx context.Context, a *app.App, c manage.Command, await bool) error {
	if t.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: expected more than 0", t.Timeout)
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		all, err := store.Daemons(ctx)
		if err != nil {
			return err
		}
		chosen, err := t.chosen(all)
		if err != nil {
			return err
		}
		by := strings.TrimPrefix(app.Requestor(), operate.RequestorMark)
		sender := manage.NewSender(store.Session(), by)
		answers, err := sender.Send(ctx, chosen, c, t.Timeout)
		if err != nil {
			return err
		}
		if err := t.Show(a, listing.Answers(answers)); err != nil {
			return err
		}
		done := slices.DeleteFunc(slices.Clone(answers), func(one manage.Answer) bool { return !one.Done })
		if await {
			var leave []zkmodel.Daemon
			for _, one := range done {
				leave = append(leave, one.Daemon)
			}
			if err := sender.AwaitEnd(ctx, leave); err != nil {
				return err
			}
		}
		if len(done) < len(answers) {
			return fmt.Errorf("%d of %d daemons have not done it", len(answers)-len(done), len(answers))
		}
		return nil
	})
}

// daemonWhoCmd asks daemons for a sign of life.
type daemonWhoCmd struct{ toDaemons }

// Run is the command.
func (c daemonWhoCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a.Reads(), manage.Command{Verb: app.VerbWho}, false)
}

// daemonReloadCmd has daemons read their configuration again.
type daemonReloadCmd struct{ toDaemons }

// Run is the command.
func (c daemonReloadCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbReload}, false)
}

// daemonLogLevelCmd changes how much daemons log.
type daemonLogLevelCmd struct {
	Level string `arg:"" enum:"trace,debug,info,warn,error" help:"trace, debug, info, warn or error."`
	toDaemons
}

// Run is the command.
func (c daemonLogLevelCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbLogLevel, Argument: c.Level}, false)
}

// daemonPauseCmd has daemons begin nothing new.
type daemonPauseCmd struct {
	app.HaltFlags
	toDaemons
}

// Run is the command.
func (c daemonPauseCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbPause, Argument: c.For.String(), Reason: c.Reason}, false)
}

// daemonResumeCmd has them go on.
type daemonResumeCmd struct{ toDaemons }

// Run is the command.
func (c daemonResumeCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbResume}, false)
}

// daemonDrainCmd has daemons end what they have in hand, and stop.
type daemonDrainCmd struct {
	Wait   bool   `help:"Wait until they have stopped, however long that takes."`
	Reason string `help:"Why, for those who see it."`
	toDaemons
}

// Run is the command.
func (c daemonDrainCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbDrain, Reason: c.Reason}, c.Wait)
}

// daemonStopCmd has daemons stop as a signal does.
type daemonStopCmd struct {
	Wait bool `help:"Wait until they have stopped."`
	toDaemons
}

// Run is the command.
func (c daemonStopCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a, manage.Command{Verb: app.VerbStop}, c.Wait)
}

// daemonDumpCmd has daemons log what they are at.
type daemonDumpCmd struct{ toDaemons }

// Run is the command.
func (c daemonDumpCmd) Run(ctx context.Context, a *app.App) error {
	return c.give(ctx, a.Reads(), manage.Command{Verb: app.VerbDump}, false)
}
