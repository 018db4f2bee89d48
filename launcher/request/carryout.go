package request

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// writers is how many requests are accepted at once, and how many are declined.
const writers = 256

// CarryOut does what was decided, where something is to be done. It returns when all that
// takes room is written, so that the next decisions count it; launches and declines go on.
// What fails is left alone for a moment, and decided anew.
func (s *Server) CarryOut(ctx context.Context, decisions []schedule.Decision) {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, d := range decisions {
		switch d := d.(type) {
		case schedule.Accept:
			s.act(ctx, &group, d, func() error { return s.accept(ctx, d) })
		case schedule.Reclaim:
			s.act(ctx, &group, d, func() error { return s.reclaim(ctx, d) })
		case schedule.Decline:
			s.declineAside(ctx, d)
		}
	}
	_ = group.Wait() // never an error
}

// act does in the group what was decided over a request, unless that is in our hands.
func (s *Server) act(ctx context.Context, group *errgroup.Group, d schedule.Decision, do func() error) {
	if s.Own.Take(d.Of().ID) {
		group.Go(func() error { s.try(ctx, d, do); return nil })
	}
}

// declineAside declines a request while the loop goes on. Declining takes nothing from
// anybody; so many are declined at once, and the others when these are.
func (s *Server) declineAside(ctx context.Context, d schedule.Decline) {
	if s.declining.Load() >= writers || !s.Own.Take(d.Request.ID) {
		return
	}
	s.declining.Add(1)
	s.Jobs.Spawn(func() {
		s.try(ctx, d, func() error { return s.decline(ctx, d) })
		s.declining.Add(-1)
		s.Notify()
	})
}

// try does what was decided; after an error the request is let go, for a moment.
func (s *Server) try(ctx context.Context, d schedule.Decision, do func() error) {
	if err := do(); err != nil {
		s.Own.Drop(d.Of().ID)
		s.postpone(ctx, d, err)
	}
}

// postpone leaves a request alone for a moment after an error.
func (s *Server) postpone(ctx context.Context, d schedule.Decision, err error) {
	if ctx.Err() != nil {
		return
	}
	id, event := d.Of().ID, d.Of().EventID
	wait := s.Jobs.Failed(inflight.Request(id), inflight.ShortPause)
	const message = "Request is left alone for a moment"
	if errors.Is(err, zkmodel.ErrConflict) {
		s.Log.Debug(message, "request", id, "event", event, "verdict", d.Verdict(), "error", err, "retry", wait)
		return
	}
	s.Troubled.Failed(s.Log, err, message, "request", id, "event", event, "verdict", d.Verdict(), "retry", wait)
}
