package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// requestRun is a request in our hands: locked, with its nodes.
type requestRun struct {
	launch.Order
	lock  *recipe.Held
	nodes []*launch.Run // in the order of the request's labels
}

// accept takes a request as decided: it is pending and locked by us, and has a
// node record for every label, before anything is asked of a cloud. Then the
// launches run on their own. zkmodel.ErrConflict says that the world has changed since the
// decision; nothing is left behind then.
func (s *session) accept(ctx context.Context, d schedule.Accept) error {
	h := &requestRun{
		Order: launch.Order{
			Request: new(*d.Request), Pool: s.pool(d.Pool.ID), Cloud: s.clouds[d.Pool.Provider],
			Asked: d.Asked, Alone: len(d.Places) == 1,
		},
		nodes: make([]*launch.Run, len(d.Places)),
	}
	if err := zkmodel.Move(h.Request, zkmodel.RequestPending, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	var fresh []*zkmodel.Node
	for i, place := range d.Places {
		if place.Node == "" {
			h.nodes[i] = &launch.Run{Place: place, Node: newNode(h, place, d.Zone)}
			fresh = append(fresh, h.nodes[i].Node)
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
	s.own.Begin(h.Request.ID)
	var err error
	if h.lock, err = s.store.AcceptRequest(ctx, h.Request, fresh, also...); err != nil {
		s.own.Undo(h.Request.ID)
		if errors.Is(err, recipe.ErrConnectionLost) {
			s.markOrphan(h.Request.ID) // it may be pending, and nobody's
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
	s.log.Info("Request accepted", "request", h.Request.ID, "requestor", h.Request.Requestor,
		"labels", h.Request.NodeTypes, "provider", d.Pool.Provider, "pool", d.Pool.Name)
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
		Provider: h.Pool.Provider.Name, Pool: h.Pool.Section.Name, Launcher: h.Pool.ID,
		Type: zkmodel.Strings{place.Label}, Resources: place.Needs, AZ: zone,
		LaunchID: zkmodel.NewLaunchID(), AllocatedTo: h.Request.ID, TenantName: h.Request.TenantName, Requestor: h.Request.Requestor,
		ConnectionPort: zkmodel.IntValue(node.SSHPort), Attributes: zkmodel.ObjectValue(h.Pool.Section.NodeAttributes),
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
	if err := zkmodel.Move(h.Request, to, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	return taken(s.store.SaveRequest(ctx, h.lock, h.Request))
}

// reuse takes a ready node that belongs to nobody.
func (s *session) reuse(ctx context.Context, h *requestRun, place schedule.Place) (*launch.Run, error) {
	lock, n, err := s.store.LockNode(ctx, place.Node, "")
	if err != nil {
		return nil, taken(err)
	}
	if n.State != zkmodel.NodeReady || n.AllocatedTo != "" || !slices.Contains(n.Type, place.Label) {
		err := fmt.Errorf("node %s is not free any more: %w", n.ID, zkmodel.ErrConflict)
		return nil, errors.Join(err, lock.Release(ctx))
	}
	n.AllocatedTo, n.TenantName, n.Requestor = h.Request.ID, h.Request.TenantName, h.Request.Requestor
	if err := s.store.SaveNode(ctx, lock, n); err != nil {
		return nil, errors.Join(taken(err), lock.Release(ctx))
	}
	s.own.Note(n)
	s.step(step.Reused)
	return &launch.Run{Place: place, Node: n, Lock: lock}, nil
}

// pool finds one of our pools by its launcher id.
func (s *session) pool(id string) *pool.Pool {
	return s.pools[slices.IndexFunc(s.pools, func(p *pool.Pool) bool { return p.ID == id })]
}

// epoch is now, as records hold it.
func (s *session) epoch() zkmodel.Epoch { return zkmodel.EpochOf(s.now()) }
