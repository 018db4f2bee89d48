package trace

import (
	"errors"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// moved is how much younger than a request its state is at least, where a launcher moved it:
// its requestor writes both times at once.
const moved = time.Second

// Request begins what this daemon does for a request, under a name. Until now it has waited:
// since it was made, or since a launcher put it back. ahead is how far ZooKeeper's clock is
// ahead of ours. The span is to be told of with Tell, and before, where the request has come
// to its end, Over is called.
func (t *Tracer) Request(r *zkmodel.Request, doing string, ahead time.Duration) *Span {
	if t == nil {
		return nil
	}
	now := time.Now()
	s := t.request(r, doing, ahead, now)
	s.life.all.Past("wait", since(r, s.life.all.from), now)
	return s
}

// TakenOver is Request for one that is pending already: of another launcher, which is gone, or
// of ours that could not bring it to an end. What it did until now it did not tell of.
func (t *Tracer) TakenOver(r *zkmodel.Request, doing string, ahead time.Duration) *Span {
	if t == nil {
		return nil
	}
	now := time.Now()
	s := t.request(r, doing, ahead, now)
	made := s.life.all.from
	accepted := r.StateTime.Time()
	if accepted.Before(made) || accepted.After(now) {
		accepted = made
	}
	s.life.all.Past("wait", made, accepted)
	s.life.all.Past("launcher before", accepted, now)
	return s
}

// Deleted tells the end of a request that was deleted while it waited: the daemon tells it that
// has written it last.
func (t *Tracer) Deleted(r *zkmodel.Request, ahead time.Duration) {
	if t == nil {
		return
	}
	now := time.Now()
	s := t.request(r, "wait", ahead, now)
	if at := since(r, s.life.all.from); at.Before(now) {
		s.from = at
	}
	s.Over("cancelled", "its requestor has left")
	s.Tell(nil)
}

// request makes the life of a request.
func (t *Tracer) request(r *zkmodel.Request, doing string, ahead time.Duration, now time.Time) *Span {
	made := r.Stat.Ctime.Add(-ahead)
	if made.After(now) { // by what the clocks differ
		made = now
	}
	id, parent := identify(r.Path(), r.Stat, r.EventID), asked(r)
	if parent.IsValid() {
		id.trace = parent.TraceID()
	}
	s := t.begin(id, parent, "request", made, doing, now)
	about := &s.life.all
	for _, say := range []*Span{about, s} {
		say.Set("request", r.ID).Set("event", r.EventID)
	}
	about.Set("labels", strings.Join(r.NodeTypes, ",")).Set("requestor", r.Requestor).Set("tenant", r.TenantName)
	return s
}

// since is when a request began to wait.
func since(r *zkmodel.Request, made time.Time) time.Time {
	at := r.StateTime.Time()
	byUs := len(r.DeclinedBy) > 0 || r.Reason != "" || r.CreatedTime != 0 && at.Sub(r.CreatedTime.Time()) > moved
	if !byUs || at.Before(made) {
		return made
	}
	return at
}

// Over says that the life of a span's record has come to its end, now: in which state, and
// why where that is not what was asked for. What comes after, as the release of locks, is not
// of its time.
func (s *Span) Over(state, reason string) {
	if s.off() {
		return
	}
	var failed error
	if reason != "" {
		failed = errors.New(reason)
	}
	l := s.life
	l.all.Set("state", state).End(failed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.self.close(l.all.to, failed)
}
