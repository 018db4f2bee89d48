package launcher

import (
	"context"
	"errors"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// findLost looks for pending requests that nobody has locked: their launcher has
// died. It is asked when a launcher came or went, and now and then.
func (s *shift) findLost(ctx context.Context) {
	busy := s.own.busy()
	found := map[string]bool{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writers)
	for _, r := range s.mirror.Requests() {
		if r.Broken != nil || s.table.request(r.State) != dutyReclaim || busy[r.ID] {
			continue
		}
		group.Go(func() error {
			locked, err := recipe.Locked(ctx, s.store.Session(), zkmodel.RequestLockPath(r.ID))
			if err == nil && !locked {
				mu.Lock()
				defer mu.Unlock()
				found[r.ID] = true
			}
			return nil // the next look asks again
		})
	}
	_ = group.Wait() // never an error
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = found
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

// reclaim takes over a request whose launcher died. Its nodes are given back or
// marked for deletion, and the request waits again as if it were new.
func (s *shift) reclaim(ctx context.Context, d Decision) error {
	lock, r, err := s.lockRequest(ctx, d, zkmodel.RequestPending)
	s.mu.Lock()
	delete(s.lost, d.Request.ID)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.reclaimLocked(ctx, lock, r)
	err = errors.Join(err, lock.Release(ctx))
	if err != nil {
		s.markLost(r.ID)
		return err
	}
	s.own.finish(r.ID)
	return nil
}

func (s *shift) reclaimLocked(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) error {
	if err := s.mirror.Barrier(ctx); err != nil { // shows every node that its launcher made
		return err
	}
	for _, n := range s.mirror.Nodes() {
		if n.Broken == nil && n.AllocatedTo == r.ID {
			if err := s.reclaimNode(ctx, n.ID); err != nil {
				return err
			}
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
