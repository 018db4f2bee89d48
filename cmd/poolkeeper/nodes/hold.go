package nodes

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// HoldCmd keeps a node for a person to look at.
type HoldCmd struct {
	ID string `arg:"" help:"The node, as list shows it."`
	app.HaltFlags
}

// Run is the command.
func (c HoldCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("node", c.ID); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		return notThere(ctx, store, app.Operator(store).Hold(ctx, c.ID, c.Reason, c.For.Duration()), c.ID)
	})
}
