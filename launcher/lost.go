package launcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// findLost looks for pending requests that nobody has locked: their launcher has
// died. It is asked when a launcher came or went, and now and then.
func (s *shift) findLost(ctx context.Context) {
	busy := s.own.busy()
	kept := maps.Clone(busy) // marks of those stay, as nobody looks at them now
	found, theirs := map[string]bool{}, s.launchedElsewhere()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writers)
	requests := s.mirror.Requests()
	for _, r := range requests {
		if s.table.request(r.State) == dutyAssign {
			kept[r.ID] = true // it may be pending already, where our own write was lost from sight
		}
	}
	for _, r := range requests {
		if r.Broken != nil || s.table.request(r.State) != dutyReclaim || busy[r.ID] || theirs[r.ID] {
			continue
		}
		group.Go(func() error {
			locked, err := recipe.Locked(ctx, s.store.Session(), zkmodel.RequestLockPath(r.ID))
			if err != nil && s.store.Session().Context().Err() == nil {
				s.log.Warn("Cannot tell whether a request is lost; the next look asks again", "request", r.ID, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			kept[r.ID] = err != nil
			if err == nil && !locked {
				found[r.ID] = true
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
	s.mu.Lock()
	for id := range s.lost {
		if kept[id] {
			found[id] = true
		}
	}
	s.lost = found
	s.mu.Unlock()
	s.findForsaken(ctx)
}

// membersLeft tells whether a pool has left since the last call; the first call always
// does.
func (s *shift) membersLeft() bool {
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
func (s *shift) launchedElsewhere() map[string]bool {
	served := map[string]bool{}
	for _, c := range s.mirror.Components(zkmodel.KindPool) {
		served[c.ProviderName] = true
	}
	theirs := map[string]bool{}
	for _, n := range s.mirror.Nodes() {
		if n.AllocatedTo != "" && s.clouds[n.Provider] == nil && served[n.Provider] {
			theirs[n.AllocatedTo] = true
		}
	}
	return theirs
}

// markLost notes a request of our own that could not be brought to an end.
func (s *shift) markLost(id string) {
	s.mu.Lock()
	s.lost[id] = true
	s.mu.Unlock()
	s.notify()
}

// lostRequests are those found or marked.
func (s *shift) lostRequests() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.lost)
}

// reclaim takes over a request whose launcher died. Where its nodes are ours to
// launch, the work goes on; else they are given back or marked for deletion, and
// the request waits again as if it were new.
func (s *shift) reclaim(ctx context.Context, d Decision) error {
	lock, r, err := s.lockRequest(ctx, d, zkmodel.RequestPending)
	if err != nil && !errors.Is(err, ErrTaken) {
		return err // it is lost still
	}
	s.mu.Lock()
	delete(s.lost, d.Request.ID)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.mirror.Barrier(ctx) // shows every node that its launcher made
	if err == nil {
		if h := s.resume(ctx, lock, r); h != nil {
			s.step(StepResumed)
			s.log.Info("Request of a launcher that is gone goes on", "request", r.ID)
			s.jobs.spawn(func() { s.handle(ctx, h) })
			return nil
		}
		err = s.restart(ctx, lock, r)
	}
	err = errors.Join(err, lock.Release(ctx))
	if err != nil {
		s.markLost(r.ID)
		return err
	}
	s.own.finish(r.ID)
	return nil
}

// nodesOf lists the nodes that are allocated to a request, by id.
func (s *shift) nodesOf(request string) []*zkmodel.Node {
	var list []*zkmodel.Node
	for _, n := range s.mirror.Nodes() {
		if n.Broken == nil && n.AllocatedTo == request {
			list = append(list, n)
		}
	}
	return list
}

// resume locks the nodes of a lost request and puts together the work that its
// launcher had in hand; nil when that is not possible.
func (s *shift) resume(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) *handling {
	left := s.nodesOf(r.ID)
	if len(left) != len(r.NodeTypes) || len(left) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.pools, func(p *pool) bool {
		return p.provider.Name == left[0].Provider && p.config.Name == left[0].Pool
	})
	if i < 0 {
		return nil
	}
	h := &handling{request: r, lock: lock, pool: s.pools[i], cloud: s.clouds[s.pools[i].provider.Name]}
	for _, label := range r.NodeTypes {
		at := slices.IndexFunc(left, func(n *zkmodel.Node) bool { return slices.Contains(n.Type, label) })
		var n *handled
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
		s.own.note(n.node)
	}
	return h
}

// resumeNode locks a node of a lost request; nil when it is of no use.
func (s *shift) resumeNode(ctx context.Context, h *handling, label string, seen *zkmodel.Node) *handled {
	if seen.Provider != h.pool.provider.Name || seen.Pool != h.pool.config.Name {
		return nil
	}
	lock, n, err := s.store.LockNode(ctx, seen.ID, "")
	if err != nil {
		return nil
	}
	useful := n.Broken == nil && n.AllocatedTo == h.request.ID &&
		(n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding || n.State == zkmodel.NodeReady)
	if !useful {
		_ = lock.Release(ctx) // until the session ends
		return nil
	}
	n.Launcher = h.pool.id
	return &handled{place: Place{Label: label}, node: n, lock: lock, resumed: n.State == zkmodel.NodeBuilding}
}

// restart makes a lost request wait again.
func (s *shift) restart(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) error {
	for _, n := range s.nodesOf(r.ID) {
		if err := s.reclaimNode(ctx, n.ID); err != nil {
			return err
		}
	}
	if err := s.table.moveRequest(r, zkmodel.RequestRequested, s.epoch()); err != nil {
		return err
	}
	r.Nodes = nil
	s.log.Info("Request of a launcher that is gone begins again", "request", r.ID)
	return taken(s.store.SaveRequest(ctx, lock, r))
}

// reclaimNode frees a ready node of a lost request, and marks one that was never
// begun for deletion. Nodes in other states are the sweep's. One that is locked
// is somebody's who is alive.
func (s *shift) reclaimNode(ctx context.Context, id string) error {
	lock, n, err := s.store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	switch n.State {
	case zkmodel.NodeReady:
		release(n)
		err = s.store.SaveNode(ctx, lock, n)
	case zkmodel.NodeInit:
		n.Reason = "its launcher is gone"
		if err = s.table.moveNode(n, zkmodel.NodeDeleting, s.epoch()); err == nil {
			err = s.store.SaveNode(ctx, lock, n)
		}
	default:
	}
	return errors.Join(err, lock.Release(ctx))
}
