package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// handle launches the nodes of an accepted request, all at once, and settles it
// when every one is ready or has failed.
func (s *session) handle(ctx context.Context, h *requestRun) {
	locked, cancel := h.lock.Bind(ctx)
	defer cancel()
	err := s.begin(locked, h)
	if err == nil {
		var group sync.WaitGroup
		for _, n := range h.nodes {
			group.Go(func() { n.Err = s.launches.Bring(locked, &h.Order, n) })
		}
		group.Wait()
		if err = context.Cause(locked); err == nil {
			err = s.settle(ctx, h)
		}
	}
	s.releaseLocks(ctx, h)
	if err != nil && ctx.Err() == nil {
		s.tells.requests.Failed(s.log, err, "Request could not be settled; it is taken up again", "request", h.Request.ID)
		s.jobs.Failed(inflight.Request(h.Request.ID), inflight.ShortPause)
		s.markOrphan(h.Request.ID)
	}
}

// begin chooses what the new nodes of a request boot from, and locks and writes
// them all at once: building, before the cloud is asked, so that from here on a
// machine may exist whatever becomes of us.
func (s *session) begin(ctx context.Context, h *requestRun) error {
	var fresh []*launch.Run
	var records []*zkmodel.Node
	for _, n := range h.nodes {
		if n.Node.State != zkmodel.NodeInit {
			continue
		}
		if err := s.launches.Prepare(&h.Order, n); err != nil {
			return err
		}
		if n.Lock != nil { // taken over
			if err := s.launches.Save(ctx, n); err != nil {
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
	locks, err := s.store.BeginNodes(ctx, h.lock, records)
	if err != nil {
		return err
	}
	for i, n := range fresh {
		n.Lock = locks[i]
		s.own.Note(n.Node)
	}
	s.step(step.Begun)
	return nil
}

// settle ends the work on a request: fulfilled, declined, given back because
// the cloud was full or a machine dead, or cancelled because its requestor has left.
func (s *session) settle(ctx context.Context, h *requestRun) error {
	var failed, later error
	for _, n := range h.nodes {
		switch {
		case errors.Is(n.Err, providers.ErrQuota):
			later = fmt.Errorf("the cloud is full: %w", n.Err)
		case errors.Is(n.Err, node.ErrNoAnswer), errors.Is(n.Err, providers.ErrUnanswered):
			later = fmt.Errorf("node %s: %w", n.Node.ID, n.Err)
		case errors.Is(n.Err, providers.ErrUnusable), errors.Is(n.Err, providers.ErrTransient) && s.inTrouble(h):
			later = fmt.Errorf("the cloud cannot be used: %w", n.Err) // nor for the next request
		case n.Err != nil:
			failed = errors.Join(failed, fmt.Errorf("node %s (%s): %w", n.Node.ID, n.Place.Label, n.Err))
		}
	}
	var err error
	switch {
	case failed != nil:
		err = s.declineFailed(ctx, h, failed)
	case later != nil:
		s.putBack(ctx, h, later.Error())
		if !errors.Is(later, providers.ErrQuota) && !errors.Is(later, providers.ErrUnanswered) { // these go elsewhere at once, or wait
			s.jobs.Failed(inflight.Request(h.Request.ID), inflight.ShortPause)
		}
	default:
		err = s.fulfill(ctx, h)
	}
	if errors.Is(err, zkmodel.ErrNotFound) {
		return s.cancelled(ctx, h)
	}
	return err
}

// fulfill hands the nodes over, in one transaction: whoever sees the request
// fulfilled finds its nodes ready and free to be locked. Nodes that we keep in
// stock are nobody's, and their request is done.
func (s *session) fulfill(ctx context.Context, h *requestRun) error {
	stock := h.Request.Requestor == minReadyRequestor
	var locks []*recipe.Held
	var changed []*zkmodel.Node
	h.Request.Nodes = nil
	for _, n := range h.nodes {
		h.Request.Nodes = append(h.Request.Nodes, n.Node.ID)
		locks = append(locks, n.Lock)
		if stock {
			node.Free(n.Node)
		}
		if n.Unsaved || stock {
			changed = append(changed, n.Node)
		}
	}
	if err := zkmodel.Move(h.Request, zkmodel.RequestFulfilled, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	finish := s.store.FinishRequest
	if stock {
		finish = s.store.DropRequest
	}
	if err := finish(ctx, append(locks, h.lock), h.Request, changed); err != nil {
		return err
	}
	h.lock = nil
	for _, n := range h.nodes {
		n.Lock = nil
		s.own.Note(n.Node)
	}
	s.step(step.Fulfilled)
	s.metrics.Fulfilled(h.Pool, s.now().Sub(h.Request.Stat.Ctime))
	s.log.Info("Request fulfilled", "request", h.Request.ID, "nodes", h.Request.Nodes)
	return nil
}

// cancelled gives the nodes of a request that is gone back for others to use.
func (s *session) cancelled(ctx context.Context, h *requestRun) error {
	s.log.Info("Request was cancelled; its nodes stay for others", "request", h.Request.ID)
	s.metrics.Cancelled(h.Pool)
	return s.freeNodes(ctx, h)
}

// putBack undoes an acceptance: the request waits again, and is not declined.
func (s *session) putBack(ctx context.Context, h *requestRun, reason string) {
	err := s.freeNodes(ctx, h)
	if err == nil {
		h.Request.Nodes, h.Request.Reason = nil, reason
		err = s.moveRequest(ctx, h, zkmodel.RequestRequested)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, zkmodel.ErrConflict) {
		s.log.Warn("Request could not be put back; it begins again", "request", h.Request.ID, "error", err)
		s.markOrphan(h.Request.ID)
	}
}

// freeNodes gives ready nodes back for others to use, and marks those that never
// got as far for deletion.
func (s *session) freeNodes(ctx context.Context, h *requestRun) error {
	var failed error
	for _, n := range h.nodes {
		if n == nil {
			continue // never taken
		}
		if n.Lock == nil && n.Node.State == zkmodel.NodeInit {
			lock, fresh, err := s.store.LockNode(ctx, n.Node.ID, "")
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			n.Lock, n.Node = lock, fresh
		}
		if n.Lock == nil {
			continue // handed over already: settled when nodes are reaped
		}
		switch n.Node.State {
		case zkmodel.NodeReady:
			node.Free(n.Node)
		case zkmodel.NodeInit:
			failed = errors.Join(failed, zkmodel.Move(n.Node, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()))
		default: // failed or aborted: written already
			continue
		}
		failed = errors.Join(failed, s.store.SaveNode(ctx, n.Lock, n.Node))
		s.own.Note(n.Node)
	}
	return failed
}

// unlockNodes releases the nodes' locks.
func (s *session) unlockNodes(ctx context.Context, h *requestRun) error {
	var failed error
	for _, n := range h.nodes {
		if n == nil || n.Lock == nil {
			continue
		}
		failed = errors.Join(failed, n.Lock.Release(ctx))
		n.Lock = nil
	}
	return failed
}

// releaseLocks releases whatever a requestRun still holds and forgets it, once the mirror
// shows how it ended. It works after the end of ctx too.
func (s *session) releaseLocks(ctx context.Context, h *requestRun) {
	ctx, cancel := inflight.Cleanup(ctx, s.store.Session())
	defer cancel()
	err := s.unlockNodes(ctx, h)
	if h.lock != nil {
		err = errors.Join(err, h.lock.Release(ctx))
	}
	if err != nil && s.store.Session().Context().Err() == nil {
		s.log.Warn("Locks of a request are given up late", "request", h.Request.ID, "error", err)
	}
	var ids []string
	for _, n := range h.nodes {
		if n != nil {
			ids = append(ids, n.Node.ID)
		}
	}
	s.own.Finish(h.Request.ID, ids...)
}

// inTrouble tells whether a launch failed for what is wrong with its cloud, so that its
// request is not declined: nothing is launched there now, or no other provider offers
// what it wants. Else it would come back to a cloud of which only a part fails.
func (s *session) inTrouble(h *requestRun) bool {
	v := h.Cloud.View()
	if v.Trouble == "" || v.Held {
		return v.Trouble != ""
	}
	return !slices.ContainsFunc(s.mirror.Components(zkmodel.KindPool), func(c *zkmodel.Component) bool {
		return c.Broken == nil && c.ProviderName != h.Pool.Provider.Name && c.Offers(h.Request.NodeTypes) && !h.Request.DeclinedByPool(c.ID)
	})
}
