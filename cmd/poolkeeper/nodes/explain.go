package nodes

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
)

// explainFlags are how an explanation is printed.
type explainFlags struct{ view.Report }

// explained is what can be printed so.
type explained interface {
	Lines(now time.Time) []string
}

// show explains something of the tree, which is read once.
func (f explainFlags) show(ctx context.Context, a *app.App, lock string, explain func(*overview.Tree, *configs.Config, []recipe.Contender) (explained, error)) error {
	return a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		locks, err := recipe.Contenders(ctx, store.Session(), lock)
		if err != nil && !recipe.Unreadable(err) {
			return err
		}
		now := time.Now()
		tree, err := overview.Read(ctx, store, now)
		if err != nil {
			return err
		}
		for _, u := range tree.Unread {
			fmt.Fprintf(a.Stderr, "poolkeeper: %s cannot be read, and are left out: %v\n", u.Part, u.Err)
		}
		e, err := explain(tree, cfg, locks)
		if err != nil {
			return err
		}
		if printed, err := f.Document(a.Stdout, e, e); printed {
			return err
		}
		for _, line := range e.Lines(now) {
			if _, err := fmt.Fprintln(terminal.Visible(a.Stdout), line); err != nil {
				return err
			}
		}
		return nil
	})
}

// RequestExplainCmd tells where a request stands.
type RequestExplainCmd struct {
	explainFlags
	ID string `arg:"" help:"The request, as request-list shows it."`
}

// Help is what the command's own help says.
func (*RequestExplainCmd) Help() string {
	return "Says of each pool that has its labels whether it may serve the request, and why not; who has its lock, which nodes it has, and what " +
		"happens next. All of that is read from ZooKeeper; what only a launcher knows, as a cloud's refusal, is in its log."
}

// Run is the command.
func (c RequestExplainCmd) Run(ctx context.Context, a *app.App) error {
	c.ID = zkmodel.WholeID(c.ID)
	if err := configs.CheckName("request", c.ID); err != nil {
		return err
	}
	return c.show(ctx, a, zkmodel.RequestLockPath(c.ID), func(t *overview.Tree, cfg *configs.Config, locks []recipe.Contender) (explained, error) {
		return t.ExplainRequest(cfg, c.ID, locks)
	})
}

// NodeExplainCmd tells what a node is at.
type NodeExplainCmd struct {
	explainFlags
	ID string `arg:"" help:"The node, as list shows it."`
}

// Help is what the command's own help says.
func (*NodeExplainCmd) Help() string {
	return "Says what the node was booted from, who has it, and what happens next."
}

// Run is the command.
func (c NodeExplainCmd) Run(ctx context.Context, a *app.App) error {
	c.ID = zkmodel.WholeID(c.ID)
	if err := configs.CheckName("node", c.ID); err != nil {
		return err
	}
	return c.show(ctx, a, zkmodel.LockPath(zkmodel.NodePath(c.ID)), func(t *overview.Tree, cfg *configs.Config, locks []recipe.Contender) (explained, error) {
		return t.ExplainNode(cfg, c.ID, locks)
	})
}
