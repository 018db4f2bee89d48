package trace

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a piece of time with a name, of the life of a record. What a daemon knows of such a
// life is kept until its part in it is over, and told at once: what a daemon has in hand when
// it is killed is told of by the daemon that takes it over, so that each trace is a tree.
//
// All methods may be called of a nil Span, which tells nothing, by any number of goroutines.
type Span struct {
	life       *life
	name       string
	from, to   time.Time // to is zero while it goes on
	attributes []attribute.KeyValue
	failed     error
	parts      []*Span
	stage      *Span // the part that goes on, of those that follow each other
}

// life is what is told of a record by one daemon at a time.
type life struct {
	t      *Tracer
	id     identity
	parent trace.SpanContext // in which it was asked for; invalid where nobody said

	mu   sync.Mutex
	all  Span // the record's whole time; to is zero while that goes on, here or elsewhere
	self *Span
}

// begin makes the life of a record, and the span of what is done now.
func (t *Tracer) begin(id identity, parent trace.SpanContext, name string, from time.Time, doing string, since time.Time) *Span {
	l := &life{t: t, id: id, parent: parent}
	l.all = Span{life: l, name: name, from: from}
	l.self = &Span{life: l, name: doing, from: since}
	l.all.parts = append(l.all.parts, l.self)
	return l.self
}

// Trace is the id of the trace, as logs show it; "" of a nil Span.
func (s *Span) Trace() string {
	if s == nil {
		return ""
	}
	return s.life.id.trace.String()
}

// Log is a log whose lines have the key trace; log itself of a nil Span.
func (s *Span) Log(log hclog.Logger) hclog.Logger {
	if s == nil {
		return log
	}
	return log.With("trace", s.Trace())
}

// Begin begins a part of a span; nil of one that has ended.
func (s *Span) Begin(name string) *Span {
	if s == nil {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if !s.to.IsZero() {
		return nil
	}
	return s.add(name, time.Now())
}

// Next begins a part of a span, and ends the one that Next began before at the same moment:
// parts that follow each other leave no gap. It is nil of a span that has ended.
func (s *Span) Next(name string) *Span {
	if s == nil {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if !s.to.IsZero() {
		return nil
	}
	now := time.Now()
	if s.stage == nil && len(s.parts) == 0 {
		now = s.from // the first begins with the whole
	}
	s.stage.close(now, nil)
	s.stage = s.add(name, now)
	return s.stage
}

// Past adds a part that is over.
func (s *Span) Past(name string, from, to time.Time) *Span {
	if s == nil || !to.After(from) {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	part := s.add(name, from)
	part.to = to
	return part
}

func (s *Span) add(name string, from time.Time) *Span {
	part := &Span{life: s.life, name: name, from: from}
	s.parts = append(s.parts, part)
	return part
}

// Set says something of a span, by a key of the log (docs/log-keys.md). An empty value says
// nothing; secrets are masked.
func (s *Span) Set(key, value string) *Span {
	if s == nil || value == "" {
		return s
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.attributes = append(s.attributes, attribute.String(key, s.life.t.mask(value)))
	return s
}

// SetInt is Set with a number.
func (s *Span) SetInt(key string, value int) *Span {
	if s == nil {
		return s
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.attributes = append(s.attributes, attribute.Int(key, value))
	return s
}

// Phases says how many seconds the phases of a command took.
func (s *Span) Phases(seconds map[string]float64) *Span {
	if s == nil {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	for phase, took := range seconds {
		s.attributes = append(s.attributes, attribute.Float64("phase."+phase, took))
	}
	return s
}

// End ends a span with what went wrong in it, and the part that goes on with it. One that has
// ended stays as it is.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.close(time.Now(), err)
}

func (s *Span) close(at time.Time, err error) {
	if s == nil || !s.to.IsZero() {
		return
	}
	s.stage.close(at, err)
	s.to, s.failed = at, err
}

// Tell ends the part of this daemon in the life of its record, and tells of it. It is called
// of what began the life, once; a life of which nothing is to be told is dropped.
func (s *Span) Tell(ctx context.Context, err error) {
	if s == nil {
		return
	}
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	l.self.close(time.Now(), err)
	begin := context.WithValue(ctx, wanted{}, l.id)
	if l.parent.IsValid() {
		begin = trace.ContextWithRemoteSpanContext(begin, l.parent)
	}
	// It is begun here also where its end is another's to tell: so the same is decided over
	// whether it is recorded.
	_, span := l.t.tracer.Start(begin, l.all.name, trace.WithTimestamp(l.all.from), trace.WithAttributes(l.all.attributes...))
	if !span.IsRecording() {
		return
	}
	for _, part := range l.all.parts {
		l.t.tell(trace.ContextWithSpan(ctx, span), part)
	}
	if !l.all.to.IsZero() {
		l.t.end(span, &l.all)
	}
}

// tell tells of a span and of its parts.
func (t *Tracer) tell(ctx context.Context, s *Span) {
	ctx, span := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithAttributes(s.attributes...))
	for _, part := range s.parts {
		part.close(s.to, s.failed) // it goes on behind our back
		t.tell(ctx, part)
	}
	t.end(span, s)
}

func (t *Tracer) end(span trace.Span, s *Span) {
	if s.failed != nil && !errors.Is(s.failed, context.Canceled) {
		span.SetStatus(codes.Error, t.mask(s.failed.Error()))
	}
	span.End(trace.WithTimestamp(s.to))
}
