package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/guard"
	"poolkeeper/zkmodel"
)

// ConfigAcceptCmd accepts what a configuration changes although that may be a mistake.
type ConfigAcceptCmd struct {
	File   string `arg:"" help:"The configuration, as the daemons read it; it also says where ZooKeeper is."`
	DryRun bool   `help:"Print what would be accepted, and accept nothing."`
}

// errOtherFile: what is guarded comes from a file that has other names or limits.
var errOtherFile = errors.New("no daemon guards anything because of this file")

// Run is the command.
func (c ConfigAcceptCmd) Run(ctx context.Context, a *app.App) error {
	a.Flags.Config = c.File
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		all, unclear, err := GuardedItems(ctx, a, store)
		if err != nil {
			return err
		}
		accepted := guard.Acceptance{File: guard.Of(cfg).Digest()}
		for _, one := range all {
			if one.File == accepted.File {
				accepted.Items = append(accepted.Items, one.Item)
			}
		}
		for _, one := range all {
			if accepted.Covers(one.File, one.Item) {
				fmt.Fprintf(a.Stdout, "%s: %s\n", one.daemon, one.Item)
			} else {
				fmt.Fprintf(a.Stderr, "poolkeeper: not accepted, as it comes from another file: %s: %s\n", one.daemon, one.Item)
			}
		}
		if len(all) > 0 && len(accepted.Items) == 0 && unclear == 0 {
			return fmt.Errorf("accept %s: %w", c.File, errOtherFile)
		}
		return c.accept(ctx, a, store, accepted)
	})
}

// accept writes down what is accepted.
func (c ConfigAcceptCmd) accept(ctx context.Context, a *app.App, store *zkmodel.Store, accepted guard.Acceptance) error {
	if c.DryRun {
		return nil
	}
	data, err := accepted.Encode()
	if err != nil {
		return err
	}
	if err := store.Accept(ctx, accepted.File, data); err != nil {
		return err
	}
	if len(accepted.Items) == 0 {
		_, err = fmt.Fprintf(a.Stdout, "Nothing is guarded. What this file changes is accepted for a week, on every host.\n")
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "Accepted, on every host. It takes effect within seconds; for hosts that read the file later, within a week.\n")
	return err
}

// guardedItem is an item that a daemon guards.
type guardedItem struct {
	guard.Item
	daemon string // that guards it
	kind   string // of that
	host   string // its full name
	path   string // of its file
	File   string // the digest of its file
}

// GuardedItems are those of all daemons, but for some that nobody can read: such a
// daemon accepts a file by its digest, whatever it guards.
func GuardedItems(ctx context.Context, a *app.App, store *zkmodel.Store) (list []guardedItem, unclear int, err error) {
	all, err := store.Configurations(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, one := range all {
		daemon := fmt.Sprintf("%s on %s (%s)", one.Kind, one.Host, one.File)
		record, err := guard.DecodeRecord(one.Data)
		if err = cmp.Or(one.Err, err); err != nil {
			fmt.Fprintf(a.Stderr, "poolkeeper: warning: %s: %v\n", daemon, err)
			unclear++
			continue
		}
		for _, i := range record.Guarded {
			list = append(list, guardedItem{i, daemon, one.Kind, one.Host, one.File, record.File})
		}
	}
	return list, unclear, nil
}
