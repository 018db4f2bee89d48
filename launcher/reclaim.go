package launcher

import (
	"context"
	"errors"
	"slices"

	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// findOrphans looks for pending requests that nobody has locked: their launcher has
// died. It is asked when a launcher came or went, and now and then.
func (s *session) findOrphans(ctx context.Context) {
	s.orphans.Find(s.mirror.Requests(), s.own.Requests(), s.launchedElsewhere(), func(r *zkmodel.Request) (bool, error) {
		locked, err := recipe.Locked(ctx, s.store.Session(), zkmodel.RequestLockPath(r.ID))
		if err != nil && s.store.Session().Context().Err() == nil {
			s.tells.requests.Failed(s.log, err, "Cannot tell whether a request is lost; the next look asks again", "request", r.ID)
		}
		return locked, err
	})
}

// membersLeft tells whether a pool has left since the last call; the first call always
// does.
func (s *session) membersLeft() bool {
	there := map[string]bool{}
	for _, c := range s.mirror.Components(zkmodel.KindPool) {
		there[c.Name] = true
	}
	left := s.members == nil
	for name := range s.members {
		left = left || !there[name]
	}
	s.members = there
	return left
}

// launchedElsewhere holds the requests whose nodes are of providers that others
// serve and we do not: those others take them up.
func (s *session) launchedElsewhere() map[string]bool {
	served := map[string]bool{}
	for _, c := range s.mirror.Components(zkmodel.KindPool) {
		served[c.ProviderName] = true
	}
	theirs := map[string]bool{}
	for _, n := range s.mirror.Nodes() {
		if n.AllocatedTo != "" && !parted(n) && s.clouds[n.Provider] == nil && served[n.Provider] {
			theirs[n.AllocatedTo] = true
		}
	}
	return theirs
}

// parted tells whether a request goes on without a node, whose machine may yet be made.
func parted(n *zkmodel.Node) bool { return n.Unanswered() && !reap.InLaunch(n) }

// markOrphan notes a request of our own that could not be brought to an end.
func (s *session) markOrphan(id string) {
	s.orphans.Mark(id)
	s.notify()
}

// reclaim takes over a request whose launcher died. Where its nodes are ours to
// launch, the work goes on; else they are given back or marked for deletion, and
// the request waits again as if it were new.
func (s *session) reclaim(ctx context.Context, d schedule.Reclaim) error {
	lock, r, err := s.lockRequest(ctx, d.Request, zkmodel.RequestPending)
	if err != nil && !errors.Is(err, zkmodel.ErrConflict) {
		return err // it is lost still
	}
	s.orphans.Forget(d.Request.ID)
	if err != nil {
		return err
	}
	err = s.mirror.Barrier(ctx) // shows every node that its launcher made
	if err == nil {
		if h := s.resume(ctx, lock, r); h != nil {
			s.step(step.Resumed)
			s.log.Info("Request of a launcher that is gone goes on", "request", r.ID)
			s.jobs.Spawn(func() { s.handle(ctx, h) })
			return nil
		}
		err = s.restart(ctx, lock, r)
	}
	err = errors.Join(err, lock.Release(ctx))
	if err != nil {
		s.markOrphan(r.ID)
		return err
	}
	s.own.Finish(r.ID)
	return nil
}

// nodesOf lists the nodes that are allocated to a request, by id, but for those that it
// goes on without.
func (s *session) nodesOf(request string) []*zkmodel.Node {
	var list []*zkmodel.Node
	for _, n := range s.mirror.Nodes() {
		if n.Broken == nil && n.AllocatedTo == request && !parted(n) {
			list = append(list, n)
		}
	}
	return list
}

// resume locks the nodes of a lost request and puts together the work that its
// launcher had in hand; nil when that is not possible.
func (s *session) resume(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) *requestRun {
	left := s.nodesOf(r.ID)
	if len(left) != len(r.NodeTypes) || len(left) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.pools, func(p *pool.Pool) bool {
		return p.Provider.Name == left[0].Provider && p.Section.Name == left[0].Pool
	})
	if i < 0 {
		return nil
	}
	h := &requestRun{
		Order: launch.Order{Request: r, Pool: s.pools[i], Cloud: s.clouds[s.pools[i].Provider.Name], Alone: len(r.NodeTypes) == 1},
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
				s.log.Warn("Locks of a request are given up late", "request", r.ID, "error", err)
			}
			return nil
		}
		h.nodes = append(h.nodes, n)
	}
	for _, n := range h.nodes {
		s.own.Note(n.Node)
	}
	return h
}

// resumeNode locks a node of a lost request; nil when it is of no use.
func (s *session) resumeNode(ctx context.Context, h *requestRun, label string, seen *zkmodel.Node) *launch.Run {
	if seen.Provider != h.Pool.Provider.Name || seen.Pool != h.Pool.Section.Name {
		return nil
	}
	lock, n, err := s.store.LockNode(ctx, seen.ID, "")
	if err != nil {
		return nil
	}
	useful := n.Broken == nil && n.AllocatedTo == h.Request.ID &&
		(n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding || n.State == zkmodel.NodeReady)
	if !useful {
		_ = lock.Release(ctx) // until the session ends
		return nil
	}
	n.Launcher = h.Pool.ID
	return &launch.Run{Place: schedule.Place{Label: label}, Node: n, Lock: lock, Resumed: n.State == zkmodel.NodeBuilding}
}

// restart makes a lost request wait again.
func (s *session) restart(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) error {
	for _, n := range s.nodesOf(r.ID) {
		if err := s.reclaimNode(ctx, n.ID); err != nil {
			return err
		}
	}
	if err := zkmodel.Move(r, zkmodel.RequestRequested, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	r.Nodes = nil
	s.log.Info("Request of a launcher that is gone begins again", "request", r.ID)
	return taken(s.store.SaveRequest(ctx, lock, r))
}

// reclaimNode frees a ready node of a lost request, and marks one that was never
// begun for deletion. Nodes in other states are reaped. One that is locked
// is somebody's who is alive.
func (s *session) reclaimNode(ctx context.Context, id string) error {
	lock, n, err := s.store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	switch n.State {
	case zkmodel.NodeReady:
		node.Free(n)
		err = s.store.SaveNode(ctx, lock, n)
	case zkmodel.NodeInit:
		n.Reason = "its launcher is gone"
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()); err == nil {
			err = s.store.SaveNode(ctx, lock, n)
		}
	default:
	}
	return errors.Join(err, lock.Release(ctx))
}
