package main

import (
	"context"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// daemonCmd is what can be said to running daemons.
type daemonCmd struct {
	List daemonListCmd `cmd:"" help:"List the running daemons: what each does for all, and since when."`
}

// daemonListCmd lists daemons, shares and places.
type daemonListCmd struct{ output }

// Run is the command.
func (c daemonListCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		daemons, err := store.Daemons(ctx)
		if err != nil {
			return err
		}
		places, err := store.Places(ctx, map[string]int{
			zkmodel.BuildLimitPath: cfg.MaxConcurrentBuilds, zkmodel.UploadLimitPath: cfg.MaxConcurrentUploads,
		})
		if err != nil {
			return err
		}
		return c.show(a, listing.Daemons(daemons, places, time.Now()))
	})
}
