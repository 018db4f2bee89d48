package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
)

// StatusCmd shows how a site is.
type StatusCmd struct {
	view.Report
	view.Watching
	All   bool `help:"Every line: what is well, too, and all of what is usually cut off."`
	Check bool `help:"One line, and the exit codes of monitoring plugins: 0 well, 1 something needs attention, 2 it is urgent, 3 nobody can tell."`
}

// Help is what the command's own help says.
func (*StatusCmd) Help() string {
	return "Shows on one screen what needs attention, with what to type; how fresh images are against their own schedules; what is in use; " +
		"who waits, and why; waves, pauses and daemons. Exit code 0 when all is well, 3 when something needs attention."
}

// Run is the command.
func (c StatusCmd) Run(ctx context.Context, a *app.App) error {
	if c.Watch {
		return c.follow(ctx, a)
	}
	var report *overview.Report
	err := a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) (err error) {
		tree, err := overview.Read(ctx, store, time.Now())
		if err == nil {
			report, err = reportOf(ctx, a, cfg, store, tree)
		}
		return err
	})
	if c.Check {
		return check(a, report, err)
	}
	if err != nil {
		return err
	}
	printed, err := c.Document(a.Stdout, report, report)
	if !printed {
		err = statusPage{report, c.All}.Print(a.Stdout, app.Width(a.Stdout))
	}
	if err == nil && report.State != overview.Well {
		return app.ExitAttention
	}
	return err
}

// follow shows it again when something has changed.
func (c StatusCmd) follow(ctx context.Context, a *app.App) error {
	if c.Check {
		return errors.New("--check is one line; it does not go with --watch")
	}
	quiet := &app.App{Flags: a.Flags, Stderr: io.Discard} // it would be told again and again
	return a.Reads().WithClient(ctx, func(_ context.Context, cfg *configs.Config, client *recipe.Client, _ *zkmodel.Store) error {
		watched := view.Watched{
			Parts: zkmodel.PartImages | zkmodel.PartNodes | zkmodel.PartRequests | zkmodel.PartComponents,
			Roots: []view.Root{{Path: zkmodel.OwnRoot, Filter: overview.Followed}},
			Begin: func(m *zkmodel.Mirror) {
				m.FollowValidations()
				if cfg.HasCanary() {
					m.FollowCanaries()
				}
			},
		}
		return c.Follow(ctx, a, client, view.Paged{Watched: watched, Make: func(ctx context.Context, m *zkmodel.Mirror, s *recipe.Session) (view.Page, error) {
			tree, err := overview.ReadMirror(ctx, m, s, time.Now())
			if err != nil {
				return nil, err
			}
			report, err := reportOf(ctx, quiet, cfg, zkmodel.NewStore(s, nil), tree)
			return statusPage{report, c.All}, err
		}})
	})
}

// statusPage is a report as it is printed; its JSON is the report's.
type statusPage struct {
	*overview.Report
	all bool
}

// Print implements view.Page.
func (p statusPage) Print(out io.Writer, width int) error {
	return p.Write(out, overview.Page{Width: width, All: p.all})
}

// reportOf makes the overview.
func reportOf(ctx context.Context, a *app.App, cfg *configs.Config, store *zkmodel.Store, tree *overview.Tree) (*overview.Report, error) {
	guarded, _, err := GuardedItems(ctx, a, store)
	if err != nil {
		return nil, err
	}
	tree.Guarded = notInEffect(guarded, tree.Daemons)
	for _, f := range cfg.Frozen {
		tree.LeftOut = append(tree.LeftOut, f.String())
	}
	return overview.New(tree, cfg), nil
}

// notInEffect are the items that daemons guard which run, each once, with those daemons.
func notInEffect(items []guardedItem, running []zkmodel.Daemon) (lines []string) {
	by := map[string][]string{}
	for _, i := range items {
		if !slices.ContainsFunc(running, func(d zkmodel.Daemon) bool {
			short, _, _ := strings.Cut(i.host, ".")
			return d.Kind == i.kind && (d.Hostname == i.host || d.Hostname == short)
		}) {
			continue // what a daemon that is gone has guarded
		}
		text := i.String()
		by[text] = append(by[text], i.kind+" on "+i.host+": "+i.Place(i.path))
	}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, text+" ("+strings.Join(slices.Compact(slices.Sorted(slices.Values(by[text]))), "; ")+")")
	}
	return lines
}

// The exit codes of monitoring plugins, by their own guidelines.
const (
	pluginWarning  app.ExitCode = 1
	pluginCritical app.ExitCode = 2
	pluginUnknown  app.ExitCode = 3
)

// check prints a plugin's line: a state, the first of what needs attention, and figures.
func check(a *app.App, r *overview.Report, err error) error {
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(a.Secrets.Error(err).Error()), "\n")
		fmt.Fprintf(a.Stdout, "POOLKEEPER UNKNOWN - %s\n", plain(first))
		return pluginUnknown
	}
	word, text := "OK", "all is well"
	var code error
	switch r.State {
	case overview.Attention:
		word, code = "WARNING", pluginWarning
	case overview.Urgent:
		word, code = "CRITICAL", pluginCritical
	case overview.Well:
	}
	if n := len(r.Attention); n > 0 {
		m := r.Attention[0]
		text, _, _ = strings.Cut(listing.Words(": ", m.What, m.Why), "\n")
		if n > 1 {
			text += fmt.Sprintf("; and %d more", n-1)
		}
	}
	_, failed := fmt.Fprintf(a.Stdout, "POOLKEEPER %s - %s | %s\n", word, plain(text), r.Figures())
	return errors.Join(failed, code)
}

// plain is text without what would end a plugin's text.
func plain(text string) string { return strings.ReplaceAll(listing.Visible(text), "|", "/") }
