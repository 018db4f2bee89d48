package nodes

import (
	"context"
	"errors"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel/action"
)

// NodeDeleteCmd marks nodes for deletion.
type NodeDeleteCmd struct {
	Broken bool     `xor:"how" help:"Nodes whose records cannot be decoded, which no daemon deletes. Their machines, if any, are found as leaks."`
	Now    bool     `xor:"how" help:"Delete their machines from here, wait for the end, and list the nodes that are left."`
	IDs    []string `arg:"" optional:"" name:"id" help:"The nodes, as list shows them. Without any, filters choose them."`
	choosing
}

// Help is what the command's own help says.
func (*NodeDeleteCmd) Help() string {
	return "With filters, shows the nodes that all of them choose, the oldest first and no more than --limit, and asks. Nodes that jobs use or were given, held nodes, and " +
		"what is being deleted are not chosen, but by --in-use and by --state hold."
}

// Run is the command.
func (c NodeDeleteCmd) Run(ctx context.Context, a *app.App) error {
	if err := c.check(c.IDs, c.Broken); err != nil {
		return err
	}
	if c.chooses() {
		if c.Now {
			return errors.New("--now: expected nodes, no filter")
		}
		return c.deleteChosen(ctx, a)
	}
	if c.Now {
		return c.now(ctx, a)
	}
	return doAndList(ctx, a, c.IDs, func(id string) action.Order { return action.Order{Action: "node-delete", Node: id, Broken: c.Broken} })
}
