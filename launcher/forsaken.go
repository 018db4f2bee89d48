package launcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// A request has failed when every registered pool has declined it, and whoever
// declines last writes that. When the one pool that had not declined leaves, the
// others are silent: each has said its word. So all look for such requests, now
// and then. They give the pool that left a while to come back, as a launcher that
// is restarted or reloads does under another id.

// findForsaken fails the requests that every pool has declined for a while.
func (s *shift) findForsaken(ctx context.Context) {
	registered := s.mirror.Components(zkmodel.KindPool)
	since := map[string]time.Time{}
	for _, r := range s.mirror.Requests() {
		if !s.isForsaken(registered, r) {
			continue
		}
		first, known := s.forsaken[r.ID]
		if !known {
			first = s.now()
		}
		if since[r.ID] = first; s.now().Sub(first) < s.deps.Resync {
			continue
		}
		s.jobs.start("forsaken "+r.ID, func() error { return s.failForsaken(ctx, r.ID) })
	}
	s.forsaken = since
}

// isForsaken tells whether nobody is left who could serve a request, as far as one
// can tell who might have served it.
func (s *shift) isForsaken(registered []*zkmodel.Component, r *zkmodel.Request) bool {
	return len(s.pools) > 0 && r.Broken == nil && r.State == zkmodel.RequestRequested && len(r.DeclinedBy) > 0 &&
		declinedByAll(registered, r) &&
		!slices.ContainsFunc(s.pools, func(p *pool) bool { return !r.DeclinedByPool(p.id) })
}

// failForsaken writes that a request has failed, if that is still so.
func (s *shift) failForsaken(ctx context.Context, id string) error {
	lock, r, err := s.store.LockRequest(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.isForsaken(s.mirror.Components(zkmodel.KindPool), r) {
		err = s.writeDecline(ctx, lock, r, nil, r.Reason)
	}
	return errors.Join(err, lock.Release(ctx))
}
