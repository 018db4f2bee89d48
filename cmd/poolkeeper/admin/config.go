// Package admin has the commands about a whole site: its configuration, its daemons, its
// events and what is left of its providers.
package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// ConfigCmd are the commands about the configuration of the fleet.
type ConfigCmd struct {
	Keygen   configKeygenCmd   `cmd:"" help:"Make a key to sign configurations with, and print its public half."`
	Push     configPushCmd     `cmd:"" help:"Check a configuration, sign it, and have all hosts of the fleet run it."`
	History  configHistoryCmd  `cmd:"" help:"List the versions that were pushed."`
	Diff     configDiffCmd     `cmd:"" help:"Show what two versions, or a version and a file, differ in."`
	Pull     configPullCmd     `cmd:"" help:"Print the text of a version."`
	Rollback configRollbackCmd `cmd:"" help:"Push the text of an older version again, as a new one."`
	Who      configWhoCmd      `cmd:"" help:"List the daemons of the fleet and the versions that they run."`
}

// configKeygenCmd makes the key of who pushes.
type configKeygenCmd struct {
	File string `arg:"" help:"The key file to make; there must be none."`
}

// Help is what the command's own help says.
func (configKeygenCmd) Help() string {
	return "The file stays with who pushes (mode 0600). What is printed is public: list it on each host in the secure file, " +
		"as an item of config-signers. A daemon runs what one of the listed keys has signed, and nothing else."
}

// Run is the command.
func (c configKeygenCmd) Run(a *app.App) error {
	key, err := fleet.NewKey(c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Stdout, key.Public())
	return err
}

// fleetTree is what the commands work on.
type fleetTree struct {
	*fleet.Store
	session *recipe.Session
	host    *configs.Config
}

// withFleet runs the body of a command about the fleet's configuration.
func withFleet(ctx context.Context, a *app.App, body func(context.Context, fleetTree) error) error {
	host, err := a.HostConfig()
	if err != nil {
		return err
	}
	return a.Reaching(ctx, host.ZooKeeper, func(ctx context.Context, _ *recipe.Client, s *recipe.Session) error {
		return body(ctx, fleetTree{fleet.NewStore(s), s, host})
	})
}

// judged is what there is to say of a version's signature.
func (t fleetTree) judged(v *fleet.Version) string {
	switch {
	case t.host.ConfigSigners == nil:
		return "not checked"
	case v.Verify(t.host.ConfigSigners) != nil:
		return "WRONG"
	}
	return "good"
}

// trusted is an error for a version whose signature is wrong: what is shown may be edited
// and pushed, and would be signed then. One that cannot be checked is told.
func (t fleetTree) trusted(a *app.App, v *fleet.Version) error {
	switch t.judged(v) {
	case "WRONG":
		return v.Verify(t.host.ConfigSigners)
	case "not checked":
		fmt.Fprintf(a.Stderr, "poolkeeper: warning: version %d: its signature is not checked: no secure file (-s) lists config-signers\n", v.Number)
	}
	return nil
}

// configHistoryCmd lists versions.
type configHistoryCmd struct{ view.Flags }

// Run is the command.
func (c configHistoryCmd) Run(ctx context.Context, a *app.App) error {
	return withFleet(ctx, a.Reads(), func(ctx context.Context, t fleetTree) error {
		all, err := t.History(ctx)
		if err != nil {
			return err
		}
		current, err := t.Current(ctx)
		if err != nil && !errors.Is(err, fleet.ErrNone) {
			fmt.Fprintln(a.Stderr, "poolkeeper: warning:", err)
		}
		return c.Show(a, t.versions(all, current))
	})
}

// versions lists what was pushed, the newest first. current is nil where there is none.
func (t fleetTree) versions(all []fleet.Entry, current *fleet.Version) *listing.Table {
	table := listing.NewPlain("versions", listing.Head{Title: "VERSION", Key: "number"}, listing.Head{Title: "PUSHED", Key: "pushed"},
		listing.Head{Title: "BY", Key: "by"}, listing.Head{Title: "SIZE", Key: "size"}, listing.Head{Title: "SIGNER", Key: "signer"},
		listing.Head{Title: "SIGNATURE", Key: "signature"}, listing.Head{Title: "MESSAGE", Key: "message"},
		listing.Head{Key: "current"}, listing.Head{Key: "error"})
	table.Named(func(cells []string) string { number, _, _ := strings.Cut(cells[0], " "); return number })
	for _, e := range slices.Backward(all) {
		if e.Err != nil {
			table.Row(listing.Shown{Text: e.Name}, nil, nil, nil, nil, nil, listing.Shown{Text: e.Err.Error()}, false, e.Err.Error())
			continue
		}
		v := e.Version
		number, runs := strconv.FormatUint(v.Number, 10), current != nil && current.ID() == v.ID()
		if runs {
			number += " current"
		}
		table.Row(listing.Shown{Text: number, Value: v.Number}, v.When(), v.By, v.Size, v.ShownSigner(), t.judged(v), v.Message, runs, nil)
	}
	return table
}

// textOf is the text that an argument names: a version by its number, a file, or, for "",
// the current version.
func (t fleetTree) textOf(ctx context.Context, a *app.App, what string) (name string, text []byte, err error) {
	number, notNumber := strconv.ParseUint(what, 10, 64)
	if what != "" && notNumber != nil {
		text, err = os.ReadFile(what)
		return what, text, err
	}
	var v *fleet.Version
	if what == "" {
		v, err = t.Current(ctx)
	} else {
		v, err = t.Version(ctx, number)
	}
	if err != nil {
		return "", nil, err
	}
	if err := t.trusted(a, v); err != nil {
		return "", nil, err
	}
	text, err = t.Text(ctx, v)
	return v.Name(), text, err
}

// configDiffCmd compares.
type configDiffCmd struct {
	From string `arg:"" optional:"" help:"The number of a version, or a file. Without it, the version before the current one."`
	To   string `arg:"" optional:"" help:"The same. Without it, the current version."`
}

// Run is the command.
func (c configDiffCmd) Run(ctx context.Context, a *app.App) error {
	return withFleet(ctx, a.Reads(), func(ctx context.Context, t fleetTree) error {
		if c.From == "" {
			current, err := t.Current(ctx)
			if err != nil {
				return err
			}
			all, err := t.History(ctx)
			if err != nil {
				return err
			}
			for _, e := range all {
				if e.Version != nil && e.Version.Number < current.Number {
					c.From = strconv.FormatUint(e.Version.Number, 10)
				}
			}
			if c.From == "" {
				return fmt.Errorf("there is no version before %d", current.Number)
			}
		}
		from, before, err := t.textOf(ctx, a, c.From)
		if err != nil {
			return err
		}
		to, after, err := t.textOf(ctx, a, c.To)
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(diff.Diff(from, before, to, after))
		return err
	})
}

// configPullCmd prints a version.
type configPullCmd struct {
	Version uint64 `arg:"" optional:"" help:"The number of the version. Without it, the current one."`
}

// Run is the command.
func (c configPullCmd) Run(ctx context.Context, a *app.App) error {
	return withFleet(ctx, a.Reads(), func(ctx context.Context, t fleetTree) error {
		what := ""
		if c.Version > 0 {
			what = strconv.FormatUint(c.Version, 10)
		}
		_, text, err := t.textOf(ctx, a, what)
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(text)
		return err
	})
}

// configWhoCmd lists daemons.
type configWhoCmd struct{ view.Flags }

// Run is the command.
func (c configWhoCmd) Run(ctx context.Context, a *app.App) error {
	return withFleet(ctx, a.Reads(), func(ctx context.Context, t fleetTree) error {
		current, err := t.Current(ctx)
		if err != nil && !errors.Is(err, fleet.ErrNone) {
			fmt.Fprintln(a.Stderr, "poolkeeper: warning:", err)
		}
		members, err := t.Members(ctx)
		if err != nil {
			return err
		}
		table := listing.NewPlain("members", listing.Head{Title: "HOST", Key: "host"}, listing.Head{Title: "DAEMON", Key: "kind"},
			listing.Head{Title: "VERSION", Key: "number"}, listing.Head{Title: "SINCE", Key: "since"}, listing.Head{Title: "STATE", Key: "state"})
		for _, m := range members {
			var since any = listing.Shown{Text: "-"}
			if m.Since > 0 {
				since = time.Unix(m.Since, 0)
			}
			table.Row(m.Host, m.Kind, m.Number, since, memberState(m, current))
		}
		return c.Show(a, table)
	})
}

// memberState says how a daemon stands to the current version, which is nil when there is none.
func memberState(m fleet.Member, current *fleet.Version) string {
	switch {
	case m.Err != nil:
		return "unknown: " + m.Name + ": " + m.Err.Error()
	case m.Number == 0 && m.Reason != "":
		return "waits: " + m.Reason
	case m.Number == 0:
		return "waits for a configuration"
	case m.Reason != "":
		return "refuses: " + m.Reason
	case current == nil:
		return "there is no current version"
	case m.Runs(current):
		return "current"
	case m.Past(current):
		return "newer than the current version"
	}
	return "behind"
}

// configRollbackCmd goes back by going forth.
type configRollbackCmd struct {
	Version uint64 `arg:"" help:"The number of the version whose text is to run again."`
	pushFlags
}

// Run is the command.
func (c configRollbackCmd) Run(ctx context.Context, a *app.App) error {
	p, err := c.begin(a)
	if err != nil {
		return err
	}
	return withFleet(ctx, a, func(ctx context.Context, t fleetTree) error {
		v, err := t.Version(ctx, c.Version)
		if err != nil {
			return err
		}
		// What is signed now must have been signed by one who may push.
		if err := v.Verify(p.signers(t)); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
		if p.text, err = t.Text(ctx, v); err != nil {
			return err
		}
		p.name, p.of = v.Name(), v.Number
		return p.push(ctx, a, t)
	})
}

// behind are lines about the daemons that do not run a version, and whether all of them
// refuse it. superseded says that there is a later one, which they may run instead.
func behind(members []fleet.Member, v *fleet.Version, superseded bool) (lines []string, refused bool) {
	refused = true
	for _, m := range members {
		if m.Runs(v) || superseded && m.Past(v) {
			continue
		}
		state := fmt.Sprintf("runs version %d", m.Number)
		switch {
		case m.Err != nil:
			state = m.Err.Error()
		case m.Refused == v.Number && m.Reason != "":
			state = "refuses it: " + m.Reason
		}
		refused = refused && m.Refused == v.Number && m.Reason != ""
		lines = append(lines, listing.Visible(strings.TrimSpace(m.Kind+" on "+m.Host+" "+state)))
	}
	return lines, refused && len(lines) > 0
}

// readTree is what a push looks at for what it would delete or stop.
func (t fleetTree) readTree(ctx context.Context) ([]*zkmodel.Image, []*zkmodel.Node, error) {
	store := zkmodel.NewStore(t.session, nil)
	images, err := store.Images(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := store.Nodes(ctx)
	return images, nodes, err
}
