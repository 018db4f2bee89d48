package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
)

// StatusCmd shows how a site is.
type StatusCmd struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"table|json" help:"How to print: table or json (${default})."`
	All    bool   `help:"Every line: what is well, too, and all of what is usually cut off."`
	Check  bool   `help:"One line, and the exit codes of monitoring plugins: 0 well, 1 something needs attention, 2 it is urgent, 3 nobody can tell."`
}

// Help is what the command's own help says.
func (*StatusCmd) Help() string {
	return "Shows on one screen what needs attention, with what to type; how fresh images are against their own schedules; what is in use; " +
		"who waits, and why; waves, pauses and daemons. Exit code 0 when all is well, 3 when something needs attention."
}

// Run is the command.
func (c StatusCmd) Run(ctx context.Context, a *app.App) error {
	report, err := read(ctx, a)
	switch {
	case c.Check:
		return check(a, report, err)
	case err != nil:
		return err
	case c.Output == "json":
		err = app.PrintJSON(a.Stdout, report)
	default:
		err = report.Write(a.Stdout, overview.Page{Width: app.Width(a.Stdout), All: c.All})
	}
	if err == nil && report.State != overview.Well {
		return app.ExitAttention
	}
	return err
}

// read makes the overview.
func read(ctx context.Context, a *app.App) (report *overview.Report, err error) {
	err = a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		tree, err := overview.Read(ctx, store, time.Now())
		if err != nil {
			return err
		}
		guarded, _, err := GuardedItems(ctx, a, store)
		if err != nil {
			return err
		}
		tree.Guarded = notInEffect(guarded, tree.Daemons)
		for _, f := range cfg.Frozen {
			tree.LeftOut = append(tree.LeftOut, f.String())
		}
		report = overview.New(tree, cfg)
		return nil
	})
	return report, err
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
		by[text] = append(by[text], i.kind+" on "+i.host)
	}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, text+" ("+strings.Join(slices.Compact(slices.Sorted(slices.Values(by[text]))), ", ")+")")
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
