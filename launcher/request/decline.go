package request

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// decline writes into a request that none of our pools can serve it. It fails with
// zkmodel.ErrConflict where one can by now, as an image is ready that was not seen.
func (s *Server) decline(ctx context.Context, d schedule.Decline) error {
	for _, id := range d.Imageless {
		p := s.pool(id)
		came, err := s.imagesCame(ctx, d.Request, p)
		if err != nil {
			return err
		}
		if came {
			return fmt.Errorf("decline request %s: its images are ready in provider %s by now: %w", d.Request.ID, p.Provider.Name, zkmodel.ErrConflict)
		}
	}
	lock, r, err := s.lockRequest(ctx, d.Request, zkmodel.RequestRequested)
	if err != nil {
		return err
	}
	span := s.Tracer.Request(r, "decline", s.Ahead())
	err = s.writeDecline(ctx, lock, r, d.Pools, d.Reason, d.Reasons)
	if err == nil && r.State == zkmodel.RequestFailed {
		span.Over(string(r.State), d.Reason)
	}
	if err == nil { // also where its lock is given up late
		span.Tell(errors.New(d.Reason))
	}
	if err = errors.Join(err, lock.Release(ctx)); err == nil {
		s.Own.Finish(r.ID)
	}
	return err
}

// writeDecline adds pools to those that declined a request. When no registered
// pool is left, it has failed. It fails with zkmodel.ErrConflict while a launcher is waited for that
// may serve it.
func (s *Server) writeDecline(ctx context.Context, lock *recipe.Held, r *zkmodel.Request, pools []string, reason string, each map[string]string) error {
	other, registered, err := s.awaited(ctx, r)
	if err != nil {
		return fmt.Errorf("decline request %s: %w", r.ID, err)
	}
	if other != nil { // it left a moment ago
		return fmt.Errorf("decline request %s: it %s: %w", r.ID, other.Why(), zkmodel.ErrConflict)
	}
	r.DeclinedBy = slices.Clone(r.DeclinedBy) // the mirror's, perhaps
	for _, id := range pools {
		if !r.DeclinedByPool(id) {
			r.DeclinedBy = append(r.DeclinedBy, id)
		}
	}
	r.Declines = maps.Clone(r.Declines)
	for id, why := range each {
		if r.Declines == nil {
			r.Declines = map[string]string{}
		}
		r.Declines[id] = zkmodel.BriefTrouble(why)
	}
	to := zkmodel.RequestRequested
	if schedule.DeclinedByAll(registered, r) {
		to = zkmodel.RequestFailed
	}
	if err := zkmodel.Move(r, to, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	r.Nodes, r.Reason = nil, reason
	if err := s.Store.SaveRequest(ctx, lock, r); err != nil {
		return taken(err)
	}
	s.leave(r)
	s.Step(step.Declined)
	s.Figures.Declined(to)
	s.Log.Info("Request declined", "request", r.ID, "event", r.EventID, "labels", r.NodeTypes, "state", to, "reason", reason)
	return nil
}

// awaited is the pool that has left and may come back to serve a request; nil is none,
// which is certain: that a pool has left may be seen before what it offered. It also gives
// the pools that it saw: one that leaves later has not been asked about.
func (s *Server) awaited(ctx context.Context, r *zkmodel.Request) (*schedule.Absence, []*zkmodel.Component, error) {
	now := func() (*schedule.Absence, []*zkmodel.Component) {
		registered := s.Tree.Components(zkmodel.KindPool)
		away := schedule.Absences(s.Offers.Known(), registered, s.Config.LauncherGrace, s.Now(), s.Ahead())
		return schedule.Awaited(away, registered, r), registered
	}
	if other, registered := now(); other != nil || s.Config.LauncherGrace == 0 {
		return other, registered, nil
	}
	if err := s.Offers.Barrier(ctx); err != nil {
		return nil, nil, err
	}
	other, registered := now()
	return other, registered, nil
}

// declineFailed declines a request whose nodes could not be launched here. What
// did come up is free for others. While a launcher is away that may serve it, nothing
// is written, as the others would take it for failed; we only remember it.
func (s *Server) declineFailed(ctx context.Context, h *run, reason error) error {
	if err := s.freeNodes(ctx, h); err != nil {
		return err
	}
	text := "launch failed: " + reason.Error()
	other, _, err := s.awaited(ctx, h.Request)
	if err != nil {
		return err
	}
	if other == nil {
		return s.writeDecline(ctx, h.lock, h.Request, []string{h.Pool.ID}, text, map[string]string{h.Pool.ID: text})
	}
	s.mu.Lock()
	if s.failed[h.Request.ID] == nil {
		s.failed[h.Request.ID] = map[string]string{}
	}
	s.failed[h.Request.ID][h.Pool.ID] = text
	s.mu.Unlock()
	h.Request.Nodes, h.Request.Reason = nil, text
	return s.moveRequest(ctx, h, zkmodel.RequestRequested)
}

// Failed is what launches failed of here, of the requests that are still there.
func (s *Server) Failed(requests []*zkmodel.Request) map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) == 0 {
		return nil
	}
	kept := map[string]map[string]string{}
	for _, r := range requests {
		if why := s.failed[r.ID]; why != nil {
			kept[r.ID] = maps.Clone(why)
		}
	}
	for id := range s.failed {
		if kept[id] == nil {
			delete(s.failed, id)
		}
	}
	return kept
}
