package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"poolkeeper/builder/waves"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/operate"
)

// Operator does what this command's user asks for.
func Operator(store *zkmodel.Store) *operate.Operator { return operate.New(store, Requestor()) }

// Requestor is who asks.
func Requestor() string {
	name, host := "somebody", "somewhere"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return operate.RequestorMark + name + "@" + host
}

// Doer does what this command's user asks for, and tells what was done on stdout, and what is to be
// known beside it on stderr.
func (a *App) Doer(cfg *configs.Config, store *zkmodel.Store) *action.Doer {
	out, notes := terminal.Visible(a.Stdout), terminal.Visible(a.Stderr)
	return &action.Doer{
		Store: store, Config: cfg, Who: Requestor(), Job: waves.Job,
		Say:  func(line string) { fmt.Fprintln(out, line) },
		Note: func(line string) { fmt.Fprintln(notes, "poolkeeper:", line) },
	}
}

// Do does one thing.
func (a *App) Do(ctx context.Context, o action.Order) error {
	if err := o.Check(); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		return a.Doer(cfg, store).Do(ctx, o)
	})
}

// Each does something to each of what ids name. What fails with one does not
// keep it from the others.
func (a *App) Each(ctx context.Context, ids []string, order func(id string) action.Order) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		var failed error
		for _, id := range ids {
			failed = errors.Join(failed, a.Doer(cfg, store).Do(ctx, order(id)))
		}
		return failed
	})
}
