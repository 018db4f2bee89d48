package main

import (
	"context"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// holdCmd keeps a node for a person to look at.
type holdCmd struct {
	ID     string        `arg:"" help:"The node, as list shows it."`
	For    time.Duration `name:"for" placeholder:"TIME" help:"How long at most, such as 8h; unlimited by default."`
	Reason string        `help:"What for; list --detail shows it."`
}

// Run is the command.
func (c holdCmd) Run(ctx context.Context, a *app) error {
	if err := configs.CheckName("node", c.ID); err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		return notThere(operator(store).Hold(ctx, c.ID, c.Reason, c.For), c.ID)
	})
}
