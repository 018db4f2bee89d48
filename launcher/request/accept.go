package request

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs/planted"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// accept takes a request as decided: it is pending and locked by us, and has a
// node record for every label, before anything is asked of a cloud. Then the
// launches run on their own. zkmodel.ErrConflict says that the world has changed since the
// decision; nothing is left behind then.
func (s *Server) accept(ctx context.Context, d schedule.Accept) error {
	h := &run{
		Order: launch.Order{
			Request: new(*d.Request), Pool: s.pool(d.Pool.ID), Cloud: s.Clouds[d.Pool.Provider],
			Asked: d.Asked, Alone: len(d.Places) == 1,
		},
		nodes: make([]*launch.Run, len(d.Places)),
	}
	h.span = s.Tracer.Request(h.Request, "serve", s.Ahead()).Set("provider", d.Pool.Provider).Set("pool", d.Pool.Name)
	h.span.Next("accept")
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
		fence, ours := s.Quotas[d.Pool.Provider].Fence()
		if !ours {
			return fmt.Errorf("the quota of %s is counted by another: %w", d.Pool.Provider, zkmodel.ErrConflict)
		}
		also = append(also, fence)
	}
	s.Own.Begin(h.Request.ID)
	var err error
	if h.lock, err = s.Store.AcceptRequest(ctx, h.Request, fresh, also...); err != nil {
		s.Own.Undo(h.Request.ID)
		if errors.Is(err, recipe.ErrConnectionLost) {
			s.markOrphan(h.Request.ID) // it may be pending, and nobody's
			if d.UsesQuota {
				s.Quotas[d.Pool.Provider].Doubt(ctx) // and its nodes be there, which are not counted yet
			}
		}
		return taken(err)
	}
	s.takeUp(h.Request.ID)
	for _, n := range fresh {
		s.Own.Created(n)
	}
	s.Step(step.Accepted)
	if err := s.takeReady(ctx, h, d.Places, also...); err != nil {
		s.putBack(ctx, h, "could not be accepted: "+err.Error())
		s.releaseLocks(ctx, h)
		h.span.Tell(err)
		return err
	}
	h.span.Log(s.Log).Info("Request accepted", "request", h.Request.ID, "event", h.Request.EventID, "requestor", h.Request.Requestor,
		"labels", h.Request.NodeTypes, "provider", d.Pool.Provider, "pool", d.Pool.Name)
	s.Jobs.Spawn(func() { s.handle(ctx, h) })
	return nil
}

// takeReady takes the ready nodes of a decision, each in one transaction with also.
func (s *Server) takeReady(ctx context.Context, h *run, places []schedule.Place, also ...recipe.Op) error {
	var group errgroup.Group
	for i, place := range places {
		if place.Node == "" {
			continue
		}
		group.Go(func() (err error) {
			if h.nodes[i], err = s.reuse(ctx, h, place, also...); err != nil {
				return fmt.Errorf("label %s: %w", place.Label, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// newNode is the record of a node that is to be launched.
func newNode(h *run, place schedule.Place, zone string) *zkmodel.Node {
	return &zkmodel.Node{
		Provider: h.Pool.Provider.Name, Pool: h.Pool.Section.Name, Launcher: h.Pool.ID,
		Type: zkmodel.Strings{place.Label}, Resources: place.Needs, AZ: zone,
		LaunchID: zkmodel.NewLaunchID(), AllocatedTo: h.Request.ID, TenantName: h.Request.TenantName, Requestor: h.Request.Requestor,
		ConnectionPort: zkmodel.IntValue(node.SSHPort), Attributes: zkmodel.ObjectValue(h.Pool.Section.NodeAttributes),
	}
}

// reuse takes a ready node that belongs to nobody.
func (s *Server) reuse(ctx context.Context, h *run, place schedule.Place, also ...recipe.Op) (*launch.Run, error) {
	lock, n, err := s.Store.LockNode(ctx, place.Node, "")
	if err != nil {
		return nil, taken(err)
	}
	if n.State != zkmodel.NodeReady || n.AllocatedTo != "" && !planted.Bug("claim") || !slices.Contains(n.Type, place.Label) {
		err := fmt.Errorf("node %s is not free any more: %w", n.ID, zkmodel.ErrConflict)
		return nil, errors.Join(err, lock.Release(ctx))
	}
	n.AllocatedTo, n.TenantName, n.Requestor = h.Request.ID, h.Request.TenantName, h.Request.Requestor
	if err := s.Store.SaveNode(ctx, lock, n, also...); err != nil {
		return nil, errors.Join(taken(err), lock.Release(ctx))
	}
	s.Own.Note(n)
	s.Step(step.Reused)
	return &launch.Run{Place: place, Node: n, Lock: lock}, nil
}
