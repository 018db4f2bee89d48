package request

import (
	"context"
	"errors"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/zkmodel"
)

// freeNodes gives ready nodes back for others to use, and marks those that never
// got as far for deletion.
func (s *Server) freeNodes(ctx context.Context, h *run) error {
	var failed error
	for _, n := range h.nodes {
		if n == nil {
			continue // never taken
		}
		if n.Lock == nil && n.Node.State == zkmodel.NodeInit {
			lock, fresh, err := s.Store.LockNode(ctx, n.Node.ID, "")
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
			if h.yields != "" {
				n.Node.Reason = h.yields
				failed = errors.Join(failed, zkmodel.Move(n.Node, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()))
			}
		case zkmodel.NodeInit:
			n.Node.Reason = "its request is given back"
			failed = errors.Join(failed, zkmodel.Move(n.Node, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()))
		default: // failed or aborted: written already
			continue
		}
		if err := s.Store.SaveNode(ctx, n.Lock, n.Node); err != nil {
			failed = errors.Join(failed, err)
			continue // it counts as it was written last
		}
		s.Own.Note(n.Node)
	}
	return failed
}

// unlockNodes releases the nodes' locks.
func (s *Server) unlockNodes(ctx context.Context, h *run) error {
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

// releaseLocks releases whatever a run still holds and forgets it, once the mirror
// shows how it ended. It works after the end of ctx too.
func (s *Server) releaseLocks(ctx context.Context, h *run) {
	ctx, cancel := inflight.Cleanup(ctx, s.Store.Session())
	defer cancel()
	err := s.unlockNodes(ctx, h)
	if h.lock != nil {
		err = errors.Join(err, h.lock.Release(ctx))
	}
	if err != nil && s.Store.Session().Context().Err() == nil {
		h.span.Log(s.Log).Warn("Locks of a request are given up late", "request", h.Request.ID, "event", h.Request.EventID, "error", err)
	}
	var ids []string
	for _, n := range h.nodes {
		if n != nil {
			ids = append(ids, n.Node.ID)
		}
	}
	s.Own.Finish(h.Request.ID, ids...)
}
