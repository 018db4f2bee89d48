package nodes

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// ListCmd lists nodes.
type ListCmd struct{ app.OutputFlags }

// Run is the command.
func (c ListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		nodes, err := store.Nodes(ctx)
		if err != nil {
			return err
		}
		return c.Show(a, listing.Nodes(nodes, time.Now()))
	})
}

// RequestListCmd lists node requests.
type RequestListCmd struct{ app.OutputFlags }

// Run is the command.
func (c RequestListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		requests, err := store.Requests(ctx)
		if err != nil {
			return err
		}
		pools, err := store.Components(ctx, zkmodel.KindPool)
		if err != nil { // the list is worth having without
			fmt.Fprintln(a.Stderr, "poolkeeper: cannot tell which requests wait for a provider:", err)
		}
		for _, r := range requests {
			if why := zkmodel.WaitsForProvider(pools, r); why != "" && r.State == zkmodel.RequestRequested {
				r.Reason = why
			}
		}
		return c.Show(a, listing.Requests(requests))
	})
}
