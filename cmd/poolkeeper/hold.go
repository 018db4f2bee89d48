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
		lock, n, err := lockNode(ctx, store, c.ID)
		if err != nil {
			return err
		}
		reason := requestor()
		if c.Reason != "" {
			reason += ": " + c.Reason
		}
		return holdNode(ctx, store, takenNode{lock, n}, reason, c.For)
	})
}
