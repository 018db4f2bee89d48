package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// the node's lock. In the end the node is ready and nobody's, or has failed.
func (s *session) Adopt(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	if _, err := s.store.Request(ctx, n.AllocatedTo); !errors.Is(err, zkmodel.ErrNotFound) {
		return err
	}
	i := slices.IndexFunc(s.pools, func(p *pool.Pool) bool { return p.Provider.Name == n.Provider && p.Section.Name == n.Pool })
	if i < 0 || len(n.Type) == 0 {
		return fmt.Errorf("go on with node %s: its pool %s of %s is not ours: %w", n.ID, n.Pool, n.Provider, zkmodel.ErrConflict)
	}
	n.Launcher = s.pools[i].ID
	own := &nodeRun{place: schedule.Place{Label: n.Type[0]}, node: n, lock: lock, resumed: n.State == zkmodel.NodeBuilding}
	h := &requestRun{
		request: &zkmodel.Request{ID: n.AllocatedTo, Requestor: n.Requestor, NodeTypes: n.Type, TenantName: n.TenantName},
		pool:    s.pools[i], cloud: s.clouds[n.Provider], nodes: []*nodeRun{own},
	}
	s.step(step.Resumed)
	s.log.Info("Launch for stock goes on; its launcher is gone", "node", n.ID, "provider", n.Provider)
	if err := s.begin(ctx, h); err != nil {
		return err
	}
	if n.State == zkmodel.NodeBuilding {
		if err := s.launch(ctx, h, own); err != nil {
			if ctx.Err() == nil {
				return nil // it was logged and is in the record; the node is deleted
			}
			return err
		}
	}
	if n.State != zkmodel.NodeReady {
		return nil // there is nothing to boot it from
	}
	node.Free(n)
	return s.save(ctx, own)
}
