package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// ListCmd lists nodes.
type ListCmd struct {
	view.Flags
	view.Watching
	view.ByState
	view.ByProvider
	view.ByLabel
}

// Run is the command.
func (c ListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		filters := []view.Filter{view.States(c.ByState, zkmodel.NodeStates()...), c.Providers(cfg), c.Labels(cfg)}
		if c.Watch {
			return c.Follow(ctx, a, client, view.Watched{Parts: zkmodel.PartNodes, Table: watchedNodes}, filters...)
		}
		nodes, err := store.Nodes(bound)
		if err != nil {
			return err
		}
		return c.Show(a, listing.Nodes(nodes, time.Now()), filters...)
	})
}

// doAndList does something to each of some nodes, and lists those that it was done to as they are
// then, as Nodepool does. What fails with one does not keep it from the others.
func doAndList(ctx context.Context, a *app.App, ids []string, order func(id string) action.Order) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		var done []*zkmodel.Node
		var failed error
		for _, id := range ids {
			err := a.Doer(cfg, store).Do(ctx, order(id))
			if err == nil {
				var n *zkmodel.Node
				if n, err = store.Node(ctx, zkmodel.WholeID(id)); err == nil {
					done = append(done, n)
				}
				if errors.Is(err, zkmodel.ErrNotFound) {
					err = nil // its launcher was quick
				}
			}
			failed = errors.Join(failed, err)
		}
		if len(done) == 0 {
			return failed
		}
		return errors.Join(failed, view.Flags{Forms: view.Forms{Output: "table"}}.Show(a, listing.Nodes(done, time.Now())))
	})
}

// watchedNodes are the nodes as a mirror has them.
func watchedNodes(m *zkmodel.Mirror, now time.Time) *listing.Table {
	return listing.Nodes(m.Nodes(), now)
}

// RequestListCmd lists node requests.
type RequestListCmd struct {
	view.Flags
	view.Watching
	view.ByState
	view.ByLabel
}

// Run is the command.
func (c RequestListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithClient(ctx, func(bound context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		filters := []view.Filter{view.States(c.ByState, zkmodel.RequestStates()...), c.Labels(cfg)}
		if c.Watch {
			watched := view.Watched{Parts: zkmodel.PartRequests | zkmodel.PartComponents, Table: watchedRequests}
			return c.Follow(ctx, a, client, watched, filters...)
		}
		requests, err := store.Requests(bound)
		if err != nil {
			return err
		}
		pools, err := store.Components(bound, zkmodel.KindPool)
		if err != nil { // the list is worth having without
			fmt.Fprintln(a.Stderr, "poolkeeper: cannot tell which requests wait for a provider:", err)
		}
		return c.Show(a, requestTable(requests, pools), filters...)
	})
}

// watchedRequests are the requests as a mirror has them.
func watchedRequests(m *zkmodel.Mirror, _ time.Time) *listing.Table {
	return requestTable(m.Requests(), m.Components(zkmodel.KindPool))
}

// requestTable lists requests, with the reason of those that wait for a provider.
func requestTable(requests []*zkmodel.Request, pools []*zkmodel.Component) *listing.Table {
	list := make([]*zkmodel.Request, 0, len(requests))
	for _, r := range requests {
		if why := cmp.Or(zkmodel.WaitsForProvider(pools, r), zkmodel.LaunchesFail(pools, r)); why != "" && r.State == zkmodel.RequestRequested {
			one := *r // others see the mirror's, too
			one.Reason = why
			r = &one
		}
		list = append(list, r)
	}
	return listing.Requests(list)
}
