package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// requestRun is a request in our hands: locked, with its nodes.
type requestRun struct {
	request *zkmodel.Request
	lock    *recipe.Held
	pool    *pool.Pool
	cloud   *supply.Provider
	nodes   []*nodeRun // in the order of the request's labels
	asked   lesson.Asked
}

// nodeRun is one node of a request, locked by us until the request is done.
type nodeRun struct {
	place schedule.Place
	node  *zkmodel.Node
	lock  *recipe.Held
	err   error // of the launch

	spec    providers.NodeSpec // of the next attempt, when it is chosen already
	resumed bool               // another launcher asked for its machine
	unsaved bool               // ready, and to be written with the request

	accepted bool // the cloud's acceptance has taught its lesson
}

// accept takes a request as decided: it is pending and locked by us, and has a
// node record for every label, before anything is asked of a cloud. Then the
// launches run on their own. zkmodel.ErrConflict says that the world has changed since the
// decision; nothing is left behind then.
func (s *session) accept(ctx context.Context, d schedule.Accept) error {
	h := &requestRun{
		request: new(*d.Request), pool: s.pool(d.Pool.ID), cloud: s.clouds[d.Pool.Provider],
		nodes: make([]*nodeRun, len(d.Places)), asked: d.Asked,
	}
	if err := zkmodel.Move(h.request, zkmodel.RequestPending, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	var fresh []*zkmodel.Node
	for i, place := range d.Places {
		if place.Node == "" {
			h.nodes[i] = &nodeRun{place: place, node: newNode(h, place, d.Zone)}
			fresh = append(fresh, h.nodes[i].node)
		}
	}
	var also []recipe.Op
	if d.UsesQuota {
		fence, ours := s.tenures[d.Pool.Provider].Fence()
		if !ours {
			return fmt.Errorf("the quota of %s is counted by another: %w", d.Pool.Provider, zkmodel.ErrConflict)
		}
		also = append(also, fence)
	}
	s.own.Begin(h.request.ID)
	var err error
	if h.lock, err = s.store.AcceptRequest(ctx, h.request, fresh, also...); err != nil {
		s.own.Undo(h.request.ID)
		if errors.Is(err, recipe.ErrConnectionLost) {
			s.markOrphan(h.request.ID) // it may be pending, and nobody's
		}
		return taken(err)
	}
	for _, n := range fresh {
		s.own.Created(n)
	}
	s.step(step.Accepted)
	if err := s.takeReady(ctx, h, d.Places); err != nil {
		s.putBack(ctx, h, "could not be accepted: "+err.Error())
		s.releaseLocks(ctx, h)
		return err
	}
	s.log.Info("Request accepted", "request", h.request.ID, "requestor", h.request.Requestor,
		"labels", h.request.NodeTypes, "provider", d.Pool.Provider, "pool", d.Pool.Name)
	s.jobs.Spawn(func() { s.handle(ctx, h) })
	return nil
}

// takeReady takes the ready nodes of a decision.
func (s *session) takeReady(ctx context.Context, h *requestRun, places []schedule.Place) error {
	var group errgroup.Group
	for i, place := range places {
		if place.Node == "" {
			continue
		}
		group.Go(func() (err error) {
			if h.nodes[i], err = s.reuse(ctx, h, place); err != nil {
				return fmt.Errorf("label %s: %w", place.Label, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// newNode is the record of a node that is to be launched.
func newNode(h *requestRun, place schedule.Place, zone string) *zkmodel.Node {
	return &zkmodel.Node{
		Provider: h.pool.Provider.Name, Pool: h.pool.Section.Name, Launcher: h.pool.ID,
		Type: zkmodel.Strings{place.Label}, Resources: place.Needs, AZ: zone,
		LaunchID: zkmodel.NewLaunchID(), AllocatedTo: h.request.ID, TenantName: h.request.TenantName, Requestor: h.request.Requestor,
		ConnectionPort: zkmodel.IntValue(node.SSHPort), Attributes: zkmodel.ObjectValue(h.pool.Section.NodeAttributes),
	}
}

// lockRequest locks the request of a decision and reads it again: what was
// decided must still hold.
func (s *session) lockRequest(ctx context.Context, seen *zkmodel.Request, want zkmodel.RequestState) (*recipe.Held, *zkmodel.Request, error) {
	lock, r, err := s.store.LockRequest(ctx, seen.ID)
	if err != nil {
		return nil, nil, taken(err)
	}
	if r.State != want || !slices.Equal(r.NodeTypes, seen.NodeTypes) {
		err := fmt.Errorf("request %s has changed to %s: %w", r.ID, r.State, zkmodel.ErrConflict)
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, r, nil
}

// moveRequest writes a request in a new state.
func (s *session) moveRequest(ctx context.Context, h *requestRun, to zkmodel.RequestState) error {
	if err := zkmodel.Move(h.request, to, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	return taken(s.store.SaveRequest(ctx, h.lock, h.request))
}

// reuse takes a ready node that belongs to nobody.
func (s *session) reuse(ctx context.Context, h *requestRun, place schedule.Place) (*nodeRun, error) {
	lock, n, err := s.store.LockNode(ctx, place.Node, "")
	if err != nil {
		return nil, taken(err)
	}
	if n.State != zkmodel.NodeReady || n.AllocatedTo != "" || !slices.Contains(n.Type, place.Label) {
		err := fmt.Errorf("node %s is not free any more: %w", n.ID, zkmodel.ErrConflict)
		return nil, errors.Join(err, lock.Release(ctx))
	}
	n.AllocatedTo, n.TenantName, n.Requestor = h.request.ID, h.request.TenantName, h.request.Requestor
	if err := s.store.SaveNode(ctx, lock, n); err != nil {
		return nil, errors.Join(taken(err), lock.Release(ctx))
	}
	s.own.Note(n)
	s.step(step.Reused)
	return &nodeRun{place: place, node: n, lock: lock}, nil
}

// pool finds one of our pools by its launcher id.
func (s *session) pool(id string) *pool.Pool {
	return s.pools[slices.IndexFunc(s.pools, func(p *pool.Pool) bool { return p.ID == id })]
}

// epoch is now, as records hold it.
func (s *session) epoch() zkmodel.Epoch { return zkmodel.EpochOf(s.now()) }
