package nodes

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel/action"
)

// HoldCmd keeps a node for a person to look at.
type HoldCmd struct {
	ID string `arg:"" help:"The node, as list shows it."`
	app.HaltFlags
}

// Run is the command.
func (c HoldCmd) Run(ctx context.Context, a *app.App) error {
	return doAndList(ctx, a, []string{c.ID}, func(id string) action.Order {
		return action.Order{Action: "hold", Node: id, Reason: c.Reason, For: c.For.Duration()}
	})
}
