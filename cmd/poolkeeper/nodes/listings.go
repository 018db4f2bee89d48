package nodes

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// ListCmd lists nodes.
type ListCmd struct {
	view.Flags
	view.ByState
	view.ByProvider
	view.ByLabel
}

// Run is the command.
func (c ListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		nodes, err := store.Nodes(ctx)
		if err != nil {
			return err
		}
		return c.Show(a, listing.Nodes(nodes, time.Now()),
			view.States(c.ByState, zkmodel.NodeStates()...), c.Providers(cfg), c.Labels(cfg))
	})
}

// RequestListCmd lists node requests.
type RequestListCmd struct {
	view.Flags
	view.ByState
	view.ByLabel
}

// Run is the command.
func (c RequestListCmd) Run(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
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
		return c.Show(a, listing.Requests(requests), view.States(c.ByState, zkmodel.RequestStates()...), c.Labels(cfg))
	})
}
