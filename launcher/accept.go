package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// handling is a request in our hands: locked, with its nodes.
type handling struct {
	request *zkmodel.Request
	lock    *recipe.Held
	pool    *pool
	cloud   *cloud
	nodes   []*handled // in the order of the request's labels
}

// handled is one node of a request, locked by us until the request is done.
type handled struct {
	place Place
	node  *zkmodel.Node
	lock  *recipe.Held
	err   error // of the launch
}

// accept takes a request as decided: it is pending and locked by us, and has a
// node record for every label, before anything is asked of a cloud. Then the
// launches run on their own. ErrTaken says that the world has changed since the
// decision; nothing is left behind then.
func (s *shift) accept(ctx context.Context, d Decision) error {
	lock, r, err := s.lockRequest(ctx, d, zkmodel.RequestRequested)
	if err != nil {
		return err
	}
	h := &handling{
		request: r, lock: lock, pool: s.pool(d.Pool.ID), cloud: s.clouds[d.Pool.Provider],
		nodes: make([]*handled, len(d.Places)),
	}
	if err := s.moveRequest(ctx, h, zkmodel.RequestPending); err != nil {
		return errors.Join(err, lock.Release(ctx))
	}
	var group errgroup.Group
	for i, place := range d.Places {
		group.Go(func() (err error) {
			if h.nodes[i], err = s.takeNode(ctx, h, place); err != nil {
				return fmt.Errorf("label %s: %w", place.Label, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		s.putBack(ctx, h, "could not be accepted: "+err.Error())
		s.letGo(ctx, h)
		return err
	}
	s.log.Info("Request accepted", "request", r.ID, "requestor", r.Requestor, "labels", r.NodeTypes,
		"provider", d.Pool.Provider, "pool", d.Pool.Name)
	s.jobs.spawn(func() { s.handle(ctx, h) })
	return nil
}

// lockRequest locks the request of a decision and reads it again: what was
// decided must still hold.
func (s *shift) lockRequest(ctx context.Context, d Decision, want zkmodel.RequestState) (*recipe.Held, *zkmodel.Request, error) {
	lock, r, err := s.store.LockRequest(ctx, d.Request.ID)
	if err != nil {
		return nil, nil, taken(err)
	}
	if r.State != want || !slices.Equal(r.NodeTypes, d.Request.NodeTypes) ||
		d.Pool != nil && r.DeclinedByPool(d.Pool.ID) {
		err := fmt.Errorf("request %s has changed to %s: %w", r.ID, r.State, ErrTaken)
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, r, nil
}

// moveRequest writes a request in a new state.
func (s *shift) moveRequest(ctx context.Context, h *handling, to zkmodel.RequestState) error {
	if err := s.table.moveRequest(h.request, to, s.epoch()); err != nil {
		return err
	}
	return taken(s.store.SaveRequest(ctx, h.lock, h.request))
}

// takeNode makes or takes the node for one label.
func (s *shift) takeNode(ctx context.Context, h *handling, place Place) (*handled, error) {
	if place.Node != "" {
		return s.reuse(ctx, h, place)
	}
	n := &zkmodel.Node{
		Provider: h.pool.provider.Name, Pool: h.pool.config.Name, Launcher: h.pool.id,
		Type: zkmodel.Strings{place.Label}, Resources: place.Needs,
		AllocatedTo: h.request.ID, TenantName: h.request.TenantName, Requestor: h.request.Requestor,
		ConnectionPort: zkmodel.IntValue(sshPort), Attributes: attributes(h.pool.config.NodeAttributes),
	}
	lock, err := s.store.CreateNode(ctx, n)
	if err != nil {
		return nil, err
	}
	s.own.note(n)
	return &handled{place: place, node: n, lock: lock}, nil
}

// reuse takes a ready node that belongs to nobody.
func (s *shift) reuse(ctx context.Context, h *handling, place Place) (*handled, error) {
	lock, n, err := s.store.LockNode(ctx, place.Node, "")
	if err != nil {
		return nil, taken(err)
	}
	if n.State != zkmodel.NodeReady || n.AllocatedTo != "" || !slices.Contains(n.Type, place.Label) {
		err := fmt.Errorf("node %s is not free any more: %w", n.ID, ErrTaken)
		return nil, errors.Join(err, lock.Release(ctx))
	}
	n.AllocatedTo, n.TenantName, n.Requestor = h.request.ID, h.request.TenantName, h.request.Requestor
	if err := s.store.SaveNode(ctx, lock, n); err != nil {
		return nil, errors.Join(taken(err), lock.Release(ctx))
	}
	s.own.note(n)
	return &handled{place: place, node: n, lock: lock}, nil
}

// pool finds one of our pools by its launcher id.
func (s *shift) pool(id string) *pool {
	return s.pools[slices.IndexFunc(s.pools, func(p *pool) bool { return p.id == id })]
}

// epoch is now, as records hold it.
func (s *shift) epoch() zkmodel.Epoch { return zkmodel.EpochOf(s.now()) }
