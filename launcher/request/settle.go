package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// handle launches the nodes of an accepted request, all at once, and settles it
// when every one is ready or has failed.
func (s *Server) handle(ctx context.Context, h *run) {
	locked, cancel := h.lock.Bind(ctx)
	defer cancel()
	h.span.Next("begin")
	err := s.begin(locked, h)
	if err == nil {
		h.Span = h.span.Next("launch")
		var group sync.WaitGroup
		for _, n := range h.nodes {
			group.Go(func() { n.Err = s.Launches.Bring(locked, &h.Order, n) })
		}
		group.Wait()
		h.span.Next("settle")
		if err = context.Cause(locked); err == nil {
			err = s.settle(ctx, h)
		}
	}
	s.releaseLocks(ctx, h)
	h.span.Tell(err)
	if err != nil && ctx.Err() == nil {
		s.Troubled.Failed(h.span.Log(s.Log), err, "Request could not be settled; it is taken up again", "request", h.Request.ID, "event", h.Request.EventID)
		s.Jobs.Failed(inflight.Request(h.Request.ID), inflight.ShortPause)
		s.markOrphan(h.Request.ID)
	}
}

// begin chooses what the new nodes of a request boot from, and locks and writes
// them all at once: building, before the cloud is asked, so that from here on a
// machine may exist whatever becomes of us.
func (s *Server) begin(ctx context.Context, h *run) error {
	var fresh []*launch.Run
	var records []*zkmodel.Node
	for _, n := range h.nodes {
		if n.Node.State != zkmodel.NodeInit {
			continue
		}
		if err := s.Launches.Prepare(&h.Order, n); err != nil {
			return err
		}
		if n.Lock != nil { // taken over
			if err := s.Launches.Save(ctx, n); err != nil {
				return err
			}
			continue
		}
		fresh = append(fresh, n)
		records = append(records, n.Node)
	}
	if len(fresh) == 0 {
		return nil
	}
	var locks []*recipe.Held
	err := s.Launches.Begin(ctx, &h.Order, fresh, func(also ...recipe.Op) (err error) {
		locks, err = s.Store.BeginNodes(ctx, h.lock, records, also...)
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range fresh {
		n.Lock = locks[i]
		s.Own.Note(n.Node)
	}
	s.Step(step.Begun)
	return nil
}

// settle ends the work on a request: fulfilled, declined, given back because
// the cloud was full or a machine dead, or cancelled because its requestor has left.
func (s *Server) settle(ctx context.Context, h *run) error {
	var failed, later, lost error
	paused := h.Cloud.View().Paused
	for _, n := range h.nodes {
		switch {
		case launch.Lost(n.Err) && !errors.Is(n.Err, node.ErrNoAnswer):
			lost = fmt.Errorf("node %s: %w", n.Node.ID, n.Err)
		case n.Err != nil && paused != "": // the cloud is maintained: that a launch fails says nothing of the request
			later = fmt.Errorf("%s; node %s: %w", paused, n.Node.ID, n.Err)
		case errors.Is(n.Err, providers.ErrQuota):
			later = fmt.Errorf("the cloud is full: %w", n.Err)
		case errors.Is(n.Err, providers.ErrGivesWay):
			later, h.yields = fmt.Errorf("node %s: %w", n.Node.ID, n.Err), "its request gives way to an older one"
		case errors.Is(n.Err, node.ErrNoAnswer), errors.Is(n.Err, providers.ErrUnanswered), errors.Is(n.Err, launch.ErrUndeleted), errors.Is(n.Err, launch.ErrZone):
			later = fmt.Errorf("node %s: %w", n.Node.ID, n.Err)
		case errors.Is(n.Err, providers.ErrUnusable), errors.Is(n.Err, providers.ErrTransient) && s.inTrouble(h):
			later = fmt.Errorf("the cloud cannot be used: %w", n.Err) // nor for the next request
		case n.Err != nil:
			text := fmt.Errorf("node %s (%s): %w", n.Node.ID, n.Place.Label, n.Err)
			switch came, err := s.otherImage(ctx, h, n); {
			case err != nil:
				lost = err
			case came:
				later = fmt.Errorf("another image is ready by now: %w", text)
			default:
				failed = errors.Join(failed, text)
			}
		}
	}
	var err error
	switch {
	case lost != nil && h.yields != "":
		return errors.Join(lost, s.freeNodes(ctx, h))
	case lost != nil:
		return lost // what its nodes have come to is read anew
	case failed != nil:
		if err = s.declineFailed(ctx, h, failed); err == nil && h.Request.State == zkmodel.RequestFailed {
			h.span.Over(string(h.Request.State), h.Request.Reason)
		}
		h.span.End(failed)
	case later != nil:
		s.putBack(ctx, h, later.Error())
		if !errors.Is(later, providers.ErrQuota) && !errors.Is(later, providers.ErrUnanswered) && !errors.Is(later, launch.ErrUndeleted) && !errors.Is(later, launch.ErrZone) { // these go elsewhere at once, or wait
			s.Jobs.Failed(inflight.Request(h.Request.ID), inflight.ShortPause)
		}
	default:
		err = s.fulfill(ctx, h)
	}
	if errors.Is(err, zkmodel.ErrNotFound) {
		return s.cancelled(ctx, h)
	}
	return err
}

// fulfill hands the nodes over, in one transaction: who sees the request
// fulfilled finds its nodes ready and free to be locked. Nodes that we keep in
// stock are nobody's, and their request is done.
func (s *Server) fulfill(ctx context.Context, h *run) error {
	stock := h.Request.Requestor == schedule.MinReadyRequestor
	var locks []*recipe.Held
	var changed, kept []*zkmodel.Node
	h.Request.Nodes = nil
	for _, n := range h.nodes {
		h.Request.Nodes = append(h.Request.Nodes, n.Node.ID)
		locks = append(locks, n.Lock)
		if stock {
			node.Free(n.Node)
		}
		if n.Unsaved || stock {
			changed = append(changed, n.Node)
		} else {
			kept = append(kept, n.Node)
		}
	}
	if err := zkmodel.Move(h.Request, zkmodel.RequestFulfilled, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	locks = append(locks, h.lock)
	var err error
	if stock {
		err = s.Store.DropRequest(ctx, locks, h.Request, changed)
	} else {
		err = s.Store.FinishRequest(ctx, locks, h.Request, changed, kept...)
	}
	if err != nil {
		return err
	}
	h.lock = nil
	h.span.Over(string(h.Request.State), "")
	for _, n := range h.nodes {
		n.Lock = nil
		s.Own.Note(n.Node)
	}
	s.Step(step.Fulfilled)
	s.Figures.Fulfilled(h.Pool, s.Now().Sub(h.Request.Stat.Ctime))
	h.span.Log(s.Log).Info("Request fulfilled", "request", h.Request.ID, "event", h.Request.EventID, "nodes", h.Request.Nodes)
	return nil
}

// cancelled gives the nodes of a request that is gone back for others to use.
func (s *Server) cancelled(ctx context.Context, h *run) error {
	s.tellCancelled(h)
	return s.freeNodes(ctx, h)
}

// tellCancelled tells that the requestor of a request has deleted it.
func (s *Server) tellCancelled(h *run) {
	h.span.Over("cancelled", "its requestor has left")
	h.span.Log(s.Log).Info("Request was cancelled; its nodes stay for others", "request", h.Request.ID, "event", h.Request.EventID)
	s.Figures.Cancelled(h.Pool)
}

// putBack undoes an acceptance: the request waits again, and is not declined.
func (s *Server) putBack(ctx context.Context, h *run, reason string) {
	err := s.freeNodes(ctx, h)
	if err == nil {
		h.Request.Nodes, h.Request.Reason = nil, reason
		err = s.moveRequest(ctx, h, zkmodel.RequestRequested)
		if errors.Is(err, zkmodel.ErrNotFound) {
			s.tellCancelled(h)
			return
		}
	}
	h.span.End(errors.New(reason))
	if err != nil && ctx.Err() == nil {
		h.span.Log(s.Log).Warn("Request could not be put back; it begins again", "request", h.Request.ID, "event", h.Request.EventID, "error", err)
		s.markOrphan(h.Request.ID)
	}
}

// inTrouble tells whether a launch failed for what is wrong with its cloud, so that its
// request is not declined: nothing is launched there now, or no other provider offers
// what it wants. Else it would come back to a cloud of which only a part fails.
func (s *Server) inTrouble(h *run) bool {
	v := h.Cloud.View()
	if v.Trouble == "" || v.Held {
		return v.Trouble != ""
	}
	return !slices.ContainsFunc(s.Tree.Components(zkmodel.KindPool), func(c *zkmodel.Component) bool {
		return c.Broken == nil && c.ProviderName != h.Pool.Provider.Name && c.Offers(h.Request.NodeTypes) && !h.Request.DeclinedByPool(c.ID)
	})
}
