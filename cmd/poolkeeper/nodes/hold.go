package nodes

import (
	"context"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// HoldCmd keeps a node for a person to look at.
type HoldCmd struct {
	ID     string        `arg:"" help:"The node, as list shows it."`
	For    time.Duration `name:"for" placeholder:"TIME" help:"How long at most, such as 8h; unlimited by default."`
	Reason string        `help:"What for; list --detail shows it."`
}

// Run is the command.
func (c HoldCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("node", c.ID); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		return notThere(app.Operator(store).Hold(ctx, c.ID, c.Reason, c.For), c.ID)
	})
}
