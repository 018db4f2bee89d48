package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/manage"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// DaemonCmd is what can be said to running daemons.
type DaemonCmd struct {
	List     daemonListCmd     `cmd:"" help:"List the running daemons: version, uptime, state and current work; with -o wide also the shares and places that each holds."`
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
			return c.Follow(ctx, a, client, watchedDaemons(c.table(cfg)), states)
		}
		table, err := c.table(cfg)(bound, store, time.Now())
		if err != nil {
			return err
		}
		return c.Show(a, table, states)
	})
}

// daemonTable reads the daemons, and what the listing shows of them.
type daemonTable func(ctx context.Context, store *zkmodel.Store, now time.Time) (*listing.Table, error)

// table is the summary, or, where all columns are shown, the table with shares and places.
func (c daemonListCmd) table(cfg *configs.Config) daemonTable {
	if c.Output == "table" && !c.Detail {
		return summaryOfDaemons
	}
	return func(ctx context.Context, store *zkmodel.Store, now time.Time) (*listing.Table, error) {
		return sharesOfDaemons(ctx, cfg, store, now)
	}
}

// summaryOfDaemons reads the daemons, with the work and the configuration version of each.
func summaryOfDaemons(ctx context.Context, store *zkmodel.Store, now time.Time) (*listing.Table, error) {
	daemons, err := store.Daemons(ctx)
	if err != nil {
		return nil, err
	}
	works, err := store.BuilderWorks(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := store.Components(ctx, zkmodel.KindPool)
	if err != nil {
		return nil, err
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	members, err := fleet.NewStore(store.Session()).Members(ctx)
	if err != nil {
		return nil, err
	}
	launches := launchesByHost(pools, nodes)
	facts := func(d zkmodel.Daemon) (f listing.DaemonFacts) {
		switch d.Kind {
		case zkmodel.KindBuilder:
			f.Work = buildWork(works, d.Hostname)
		case zkmodel.KindLauncher:
			f.Work = "idle"
			if n := launches[d.Hostname]; n > 0 {
				f.Work = "launches " + listing.Count(n, "node")
			}
		}
		for _, m := range members {
			if m.Kind == d.Kind && sameHost(m.Host, d.Hostname) && m.Number > 0 {
				f.Configuration = strconv.FormatUint(m.Number, 10)
			}
		}
		return f
	}
	return listing.DaemonSummary(daemons, facts, now), nil
}

// launchesByHost counts the nodes that are being launched, by the host of their launcher.
func launchesByHost(pools []*zkmodel.Component, nodes []*zkmodel.Node) map[string]int {
	hosts, counts := map[string]string{}, map[string]int{}
	for _, p := range pools {
		hosts[p.ID] = p.Hostname
	}
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeBuilding {
			counts[hosts[n.Launcher]]++
		}
	}
	return counts
}

// buildWork says what the builder of a host does; "" if it does not report that, as Nodepool's.
func buildWork(works []zkmodel.BuilderWork, host string) string {
	var builds []string
	uploads, reports := 0, false
	for _, w := range works {
		if sameHost(w.Host, host) {
			reports = true
			builds = append(builds, w.Builds...)
			uploads += len(w.Uploads)
		}
	}
	var parts []string
	if len(builds) > 0 {
		parts = append(parts, "builds "+strings.Join(builds, ", "))
	}
	if uploads > 0 {
		parts = append(parts, listing.Count(uploads, "upload"))
	}
	if reports && len(parts) == 0 {
		return "idle"
	}
	return strings.Join(parts, "; ")
}

// sameHost reports whether two names, of which one may be short, are of one host.
func sameHost(full, name string) bool { return full == name || strings.HasPrefix(full, name+".") }

// sharesOfDaemons reads the daemons, and their shares and places.
func sharesOfDaemons(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, now time.Time) (*listing.Table, error) {
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
func watchedDaemons(table daemonTable) view.Watched {
	w := view.Watched{
		Parts: zkmodel.PartComponents,
		Read: func(ctx context.Context, _ *zkmodel.Mirror, s *recipe.Session, now time.Time) (*listing.Table, error) {
			return table(ctx, zkmodel.NewStore(s, nil), now)
		},
	}
	for _, path := range append(zkmodel.PlacesPaths(), zkmodel.BuilderWorkPath) {
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
