package trace

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
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

	silent bool // it is not recorded: nothing is kept

	mu    sync.Mutex
	all   Span // the record's whole time; to is zero while that goes on, here or elsewhere
	self  *Span
	room  []Span       // for parts
	spans int          // that are told, once it is over
	log   hclog.Logger // with the key trace
	of    hclog.Logger // of which it was made
}

// begin makes the life of a record, and the span of what is done now.
func (t *Tracer) begin(id identity, parent trace.SpanContext, name string, from time.Time, doing string, since time.Time) *Span {
	l := &life{t: t, id: id, parent: parent}
	l.all = Span{life: l, name: name, from: from}
	l.silent = !t.recorded(l)
	l.self = l.all.add(doing, since)
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
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != log { // there is one for all that a daemon does for a request
		l.of, l.log = log, log.With("trace", l.id.trace.String())
	}
	return l.log
}

// off reports whether nothing is to be told of a span.
func (s *Span) off() bool { return s == nil || s.life.silent }

// Begin begins a part of a span; nil of one that has ended.
func (s *Span) Begin(name string) *Span {
	if s.off() {
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
	if s.off() {
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
	if s.off() || !to.After(from) {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	part := s.add(name, from)
	part.to = to
	return part
}

func (s *Span) add(name string, from time.Time) *Span {
	l := s.life
	if len(l.room) == 0 {
		l.room = make([]Span, partsAtOnce)
	}
	part := &l.room[0]
	l.room = l.room[1:]
	part.life, part.name, part.from = l, name, from
	s.parts = append(s.parts, part)
	return part
}

// partsAtOnce is for how many parts of a life room is made at once.
const partsAtOnce = 7

// Set says something of a span, by a key of the log (docs/log-keys.md). An empty value says
// nothing; secrets are masked.
func (s *Span) Set(key, value string) *Span {
	if s.off() || value == "" {
		return s
	}
	s.say(attribute.String(key, s.life.t.text(value)))
	return s
}

// SetInt is Set with a number.
func (s *Span) SetInt(key string, value int) *Span {
	if s.off() {
		return s
	}
	s.say(attribute.Int(key, value))
	return s
}

// say adds an attribute, or replaces the one of its key.
func (s *Span) say(a attribute.KeyValue) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	for i := range s.attributes {
		if s.attributes[i].Key == a.Key {
			s.attributes[i] = a
			return
		}
	}
	if s.attributes == nil {
		s.attributes = make([]attribute.KeyValue, 0, 4) // as many as most have
	}
	s.attributes = append(s.attributes, a)
}

// Phases says how many seconds the phases of a command took.
func (s *Span) Phases(seconds map[string]float64) *Span {
	if s.off() {
		return s
	}
	for phase, took := range seconds {
		s.say(attribute.Float64(s.life.t.text("phase."+phase), took))
	}
	return s
}

// End ends a span with what went wrong in it, and the part that goes on with it. One that has
// ended stays as it is.
func (s *Span) End(err error) {
	if s.off() {
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
func (s *Span) Tell(err error) {
	if s.off() {
		return
	}
	l := s.life
	l.mu.Lock()
	l.self.close(time.Now(), err)
	for _, part := range l.all.parts {
		l.spans += part.finish(part.to, part.failed)
	}
	if !l.all.to.IsZero() {
		l.spans++
	}
	l.mu.Unlock()
	l.t.sender.put(l, l.spans)
}

// finish ends the parts of a span that go on behind our back, and counts all.
func (s *Span) finish(at time.Time, failed error) int {
	s.close(at, failed)
	spans := 1
	for _, part := range s.parts {
		spans += part.finish(s.to, s.failed)
	}
	return spans
}
