package request

import (
	"context"
	"errors"
	"slices"

	"poolkeeper/configs/planted"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// reclaim takes over a request whose launcher died. Where its nodes are ours to
// launch, the work goes on; else they are given back or marked for deletion, and
// the request waits again as if it were new.
func (s *Server) reclaim(ctx context.Context, d schedule.Reclaim) error {
	if planted.Bug("takeover") {
		return nil
	}
	lock, r, err := s.lockRequest(ctx, d.Request, zkmodel.RequestPending)
	if err != nil && !errors.Is(err, zkmodel.ErrConflict) {
		return err // it is lost still
	}
	s.orphans.Forget(d.Request.ID)
	if err != nil {
		return err
	}
	span := s.Tracer.TakenOver(r, "serve", s.Ahead())
	span.Next("take over")
	err = s.Tree.Barrier(ctx) // shows every node that its launcher made
	if err == nil {
		if h := s.resume(ctx, lock, r); h != nil {
			h.span = span.Set("provider", h.Pool.Provider.Name).Set("pool", h.Pool.Section.Name)
			s.Step(step.Resumed)
			span.Log(s.Log).Info("Request of a launcher that is gone goes on", "request", r.ID, "event", r.EventID)
			s.Jobs.Spawn(func() { s.handle(ctx, h) })
			return nil
		}
		err = s.restart(ctx, lock, r)
	}
	err = errors.Join(err, lock.Release(ctx))
	if err != nil {
		s.markOrphan(r.ID)
		return err
	}
	span.Tell(errors.New("its nodes cannot be gone on with; it waits again"))
	s.Own.Finish(r.ID)
	return nil
}

// nodesOf lists the nodes that are allocated to a request, by id, but for those that it
// goes on without.
func (s *Server) nodesOf(request string) []*zkmodel.Node {
	var list []*zkmodel.Node
	for _, n := range s.Tree.Nodes() {
		if n.Broken == nil && n.AllocatedTo == request && !parted(n) {
			list = append(list, n)
		}
	}
	return list
}

// resume locks the nodes of a lost request and puts together the work that its
// launcher had in hand; nil when that is not possible.
func (s *Server) resume(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) *run {
	left := s.nodesOf(r.ID)
	if len(left) != len(r.NodeTypes) || len(left) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.Pools, func(p *pool.Pool) bool {
		return p.Provider.Name == left[0].Provider && p.Section.Name == left[0].Pool
	})
	if i < 0 {
		return nil
	}
	h := &run{
		Order: launch.Order{Request: r, Pool: s.Pools[i], Cloud: s.Clouds[s.Pools[i].Provider.Name], Alone: len(r.NodeTypes) == 1},
		lock:  lock,
	}
	h.Asked.Round = h.Cloud.Lessons().Lesson.Round
	for _, label := range r.NodeTypes {
		at := slices.IndexFunc(left, func(n *zkmodel.Node) bool { return slices.Contains(n.Type, label) })
		var n *launch.Run
		if at >= 0 {
			n = s.resumeNode(ctx, h, label, left[at])
			left = slices.Delete(left, at, at+1)
		}
		if n == nil {
			if err := s.unlockNodes(ctx, h); err != nil {
				s.Log.Warn("Locks of a request are given up late", "request", r.ID, "event", r.EventID, "error", err)
			}
			return nil
		}
		h.nodes = append(h.nodes, n)
	}
	for _, n := range h.nodes {
		s.Own.Note(n.Node)
	}
	return h
}

// resumeNode locks a node of a lost request; nil when it is of no use.
func (s *Server) resumeNode(ctx context.Context, h *run, label string, seen *zkmodel.Node) *launch.Run {
	if seen.Provider != h.Pool.Provider.Name || seen.Pool != h.Pool.Section.Name {
		return nil
	}
	lock, n, err := s.Store.LockNode(ctx, seen.ID, "")
	if err != nil {
		return nil
	}
	useful := n.Broken == nil && !s.launchedByNodepool(n) && n.AllocatedTo == h.Request.ID &&
		(n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding || n.State == zkmodel.NodeReady)
	if !useful {
		_ = lock.Release(ctx) // until the session ends
		return nil
	}
	if n.Launcher != schedule.StaticLauncher {
		n.Launcher = h.Pool.ID
	}
	return &launch.Run{Place: schedule.Place{Label: label}, Node: n, Lock: lock, Resumed: n.State == zkmodel.NodeBuilding}
}

// restart makes a lost request wait again.
func (s *Server) restart(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) error {
	for _, n := range s.nodesOf(r.ID) {
		if err := s.reclaimNode(ctx, r.ID, n.ID); err != nil {
			return err
		}
	}
	if err := zkmodel.Move(r, zkmodel.RequestRequested, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	r.Nodes = nil
	s.Log.Info("Request of a launcher that is gone begins again", "request", r.ID, "event", r.EventID)
	return taken(s.Store.SaveRequest(ctx, lock, r))
}

// reclaimNode frees a ready node of a lost request, and marks one that was never
// begun for deletion. Nodes in other states are reaped. One that is locked
// is a living launcher's, and one that is another request's by now is left.
func (s *Server) reclaimNode(ctx context.Context, request, id string) error {
	lock, n, err := s.Store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case n.AllocatedTo != request:
	case n.State == zkmodel.NodeReady:
		node.Free(n)
		err = s.Store.SaveNode(ctx, lock, n)
	case n.State == zkmodel.NodeInit:
		n.Reason = "its launcher is gone"
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()); err == nil {
			err = s.Store.SaveNode(ctx, lock, n)
		}
	}
	return errors.Join(err, lock.Release(ctx))
}
