package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"poolkeeper/launcher/inflight"
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
			switch {
			case n.node.State == zkmodel.NodeBuilding:
				group.Go(func() { n.err = s.launch(locked, h, n) })
			case h.cloud.IsStatic():
				group.Go(func() { n.err = s.checkAlive(locked, h, n) })
			}
		}
		group.Wait()
		if err = context.Cause(locked); err == nil {
			err = s.settle(ctx, h)
		}
	}
	s.releaseLocks(ctx, h)
	if err != nil && ctx.Err() == nil {
		s.tells.requests.Failed(s.log, err, "Request could not be settled; it is taken up again", "request", h.request.ID)
		s.jobs.Failed(inflight.Request(h.request.ID), inflight.ShortPause)
		s.markOrphan(h.request.ID)
	}
}

// begin chooses what the new nodes of a request boot from, and locks and writes
// them all at once: building, before the cloud is asked, so that from here on a
// machine may exist whatever becomes of us.
func (s *session) begin(ctx context.Context, h *requestRun) error {
	var fresh []*nodeRun
	var records []*zkmodel.Node
	for _, n := range h.nodes {
		if n.node.State != zkmodel.NodeInit {
			continue
		}
		n.node.Attempt = 1
		to := zkmodel.NodeBuilding
		if n.spec, n.err = s.choose(h, n); n.err != nil {
			to, n.node.Reason = zkmodel.NodeDeleting, n.err.Error()
		}
		if err := zkmodel.Move(n.node, to, zkmodel.ByUs, s.epoch()); err != nil {
			return err
		}
		if n.lock != nil { // taken over
			if err := s.save(ctx, n); err != nil {
				return err
			}
			continue
		}
		fresh = append(fresh, n)
		records = append(records, n.node)
	}
	if len(fresh) == 0 {
		return nil
	}
	locks, err := s.store.BeginNodes(ctx, h.lock, records)
	if err != nil {
		return err
	}
	for i, n := range fresh {
		n.lock = locks[i]
		s.own.Note(n.node)
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
		case errors.Is(n.err, providers.ErrQuota):
			later = fmt.Errorf("the cloud is full: %w", n.err)
		case errors.Is(n.err, node.ErrNoAnswer), errors.Is(n.err, providers.ErrUnanswered):
			later = fmt.Errorf("node %s: %w", n.node.ID, n.err)
		case errors.Is(n.err, providers.ErrUnusable), errors.Is(n.err, providers.ErrTransient) && s.inTrouble(h):
			later = fmt.Errorf("the cloud cannot be used: %w", n.err) // nor for the next request
		case n.err != nil:
			failed = errors.Join(failed, fmt.Errorf("node %s (%s): %w", n.node.ID, n.place.Label, n.err))
		}
	}
	var err error
	switch {
	case failed != nil:
		err = s.declineFailed(ctx, h, failed)
	case later != nil:
		s.putBack(ctx, h, later.Error())
		if !errors.Is(later, providers.ErrQuota) && !errors.Is(later, providers.ErrUnanswered) { // these go elsewhere at once, or wait
			s.jobs.Failed(inflight.Request(h.request.ID), inflight.ShortPause)
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
	stock := h.request.Requestor == minReadyRequestor
	var locks []*recipe.Held
	var changed []*zkmodel.Node
	h.request.Nodes = nil
	for _, n := range h.nodes {
		h.request.Nodes = append(h.request.Nodes, n.node.ID)
		locks = append(locks, n.lock)
		if stock {
			node.Free(n.node)
		}
		if n.unsaved || stock {
			changed = append(changed, n.node)
		}
	}
	if err := zkmodel.Move(h.request, zkmodel.RequestFulfilled, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	finish := s.store.FinishRequest
	if stock {
		finish = s.store.DropRequest
	}
	if err := finish(ctx, append(locks, h.lock), h.request, changed); err != nil {
		return err
	}
	h.lock = nil
	for _, n := range h.nodes {
		n.lock = nil
		s.own.Note(n.node)
	}
	s.step(step.Fulfilled)
	s.metrics.Fulfilled(h.pool, s.now().Sub(h.request.Stat.Ctime))
	s.log.Info("Request fulfilled", "request", h.request.ID, "nodes", h.request.Nodes)
	return nil
}

// cancelled gives the nodes of a request that is gone back for others to use.
func (s *session) cancelled(ctx context.Context, h *requestRun) error {
	s.log.Info("Request was cancelled; its nodes stay for others", "request", h.request.ID)
	s.metrics.Cancelled(h.pool)
	return s.freeNodes(ctx, h)
}

// putBack undoes an acceptance: the request waits again, and is not declined.
func (s *session) putBack(ctx context.Context, h *requestRun, reason string) {
	err := s.freeNodes(ctx, h)
	if err == nil {
		h.request.Nodes, h.request.Reason = nil, reason
		err = s.moveRequest(ctx, h, zkmodel.RequestRequested)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, zkmodel.ErrConflict) {
		s.log.Warn("Request could not be put back; it begins again", "request", h.request.ID, "error", err)
		s.markOrphan(h.request.ID)
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
		if n.lock == nil && n.node.State == zkmodel.NodeInit {
			lock, fresh, err := s.store.LockNode(ctx, n.node.ID, "")
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			n.lock, n.node = lock, fresh
		}
		if n.lock == nil {
			continue // handed over already: settled when nodes are reaped
		}
		switch n.node.State {
		case zkmodel.NodeReady:
			node.Free(n.node)
		case zkmodel.NodeInit:
			failed = errors.Join(failed, zkmodel.Move(n.node, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()))
		default: // failed or aborted: written already
			continue
		}
		failed = errors.Join(failed, s.store.SaveNode(ctx, n.lock, n.node))
		s.own.Note(n.node)
	}
	return failed
}

// unlockNodes releases the nodes' locks.
func (s *session) unlockNodes(ctx context.Context, h *requestRun) error {
	var failed error
	for _, n := range h.nodes {
		if n == nil || n.lock == nil {
			continue
		}
		failed = errors.Join(failed, n.lock.Release(ctx))
		n.lock = nil
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
		s.log.Warn("Locks of a request are given up late", "request", h.request.ID, "error", err)
	}
	var ids []string
	for _, n := range h.nodes {
		if n != nil {
			ids = append(ids, n.node.ID)
		}
	}
	s.own.Finish(h.request.ID, ids...)
}

// inTrouble tells whether a launch failed for what is wrong with its cloud, so that its
// request is not declined: nothing is launched there now, or no other provider offers
// what it wants. Else it would come back to a cloud of which only a part fails.
func (s *session) inTrouble(h *requestRun) bool {
	v := h.cloud.View()
	if v.Trouble == "" || v.Held {
		return v.Trouble != ""
	}
	return !slices.ContainsFunc(s.mirror.Components(zkmodel.KindPool), func(c *zkmodel.Component) bool {
		return c.Broken == nil && c.ProviderName != h.pool.Provider.Name && c.Offers(h.request.NodeTypes) && !h.request.DeclinedByPool(c.ID)
	})
}
