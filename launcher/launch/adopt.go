package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Requests for stock go with the session of the launcher that made them. What is in
// launch for them is not given up: the stock lacks it all the same, and its machine
// may be booting for long. Whoever launches it goes on; where that one is gone too,
// another launcher of the pool does, without a request.

// Adopt goes on with the launch of a node whose request for stock is gone, under
// the node's lock. In the end the node is ready and nobody's, or has failed. It is inflight.ErrOutdated
// where the request is there.
func (l *Launches) Adopt(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	switch _, err := l.Store.Request(ctx, n.AllocatedTo); {
	case err == nil:
		return inflight.ErrOutdated
	case !errors.Is(err, zkmodel.ErrNotFound):
		return err
	}
	i := slices.IndexFunc(l.Pools, func(p *pool.Pool) bool { return p.Provider.Name == n.Provider && p.Section.Name == n.Pool })
	if i < 0 || len(n.Type) == 0 {
		return fmt.Errorf("go on with node %s: its pool %s of %s is not ours: %w", n.ID, n.Pool, n.Provider, zkmodel.ErrConflict)
	}
	n.Launcher = l.Pools[i].ID
	own := &Run{Place: schedule.Place{Label: n.Type[0]}, Node: n, Lock: lock, Resumed: n.State == zkmodel.NodeBuilding}
	o := &Order{
		Request: &zkmodel.Request{ID: n.AllocatedTo, Requestor: n.Requestor, NodeTypes: n.Type, TenantName: n.TenantName},
		Pool:    l.Pools[i], Cloud: l.Clouds[n.Provider], Alone: true, Gone: true,
	}
	l.Step(step.Resumed)
	l.Log.Info("Launch for stock goes on; its launcher is gone", "node", n.ID, "provider", n.Provider)
	if n.State == zkmodel.NodeInit {
		if err := l.Prepare(o, own); err != nil {
			return err
		}
		if err := l.Save(ctx, own); err != nil {
			return err
		}
	}
	if n.State == zkmodel.NodeBuilding {
		if err := l.launch(ctx, o, own); err != nil {
			if ctx.Err() == nil && n.State != zkmodel.NodeBuilding {
				return nil // it was logged and is in the record; the node is deleted
			}
			return err
		}
	}
	if n.State != zkmodel.NodeReady {
		return nil // there is nothing to boot it from
	}
	node.Free(n)
	return l.Save(ctx, own)
}
