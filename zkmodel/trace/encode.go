package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// scope is the name under which all spans are told.
const scope = "poolkeeper"

const (
	flags     = uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | 1 // 1: sampled
	ofAnother = flags | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
)

// encoder makes messages of the protocol of lives that are over. There are a dozen messages to
// a request's span, so their memory is kept from batch to batch.
type encoder struct {
	out []*tracepb.Span

	ids    pool[[8]byte]
	spans  pool[tracepb.Span]
	pairs  pool[common.KeyValue]
	values pool[common.AnyValue]
	texts  pool[common.AnyValue_StringValue]
}

// reset begins the next batch: what was made until now may not be used any more.
func (e *encoder) reset() {
	clear(e.out)
	e.out = e.out[:0]
	e.ids.used, e.spans.used, e.pairs.used, e.values.used, e.texts.used = 0, 0, 0, 0, 0
}

// pool hands out values that it has made before, as they were left, or new ones.
type pool[T any] struct {
	pieces [][]T
	used   int
}

// piece is how many values are made at once.
const piece = 64

func (p *pool[T]) next() *T {
	if p.used == piece*len(p.pieces) {
		p.pieces = append(p.pieces, make([]T, piece))
	}
	one := &p.pieces[p.used/piece][p.used%piece]
	p.used++
	return one
}

// life encodes what is told of a life.
func (e *encoder) life(l *life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root := l.id.span[:]
	if !l.all.to.IsZero() {
		one := e.one(&l.all, root)
		if l.parent.IsValid() {
			parent := l.parent.SpanID()
			one.ParentSpanId, one.Flags = parent[:], ofAnother
		}
	}
	for _, part := range l.all.parts {
		e.tree(part, root)
	}
}

// tree encodes a span and its parts.
func (e *encoder) tree(s *Span, parent []byte) {
	id := e.id()
	e.one(s, id).ParentSpanId = parent
	for _, part := range s.parts {
		e.tree(part, id)
	}
}

func (e *encoder) one(s *Span, id []byte) *tracepb.Span {
	one := e.spans.next()
	one.TraceId, one.SpanId, one.ParentSpanId, one.Flags, one.Status = s.life.id.trace[:], id, nil, flags, nil
	one.Name, one.Kind = s.name, tracepb.Span_SPAN_KIND_INTERNAL
	one.StartTimeUnixNano, one.EndTimeUnixNano = uint64(max(0, s.from.UnixNano())), uint64(max(0, s.to.UnixNano())) //nolint:gosec // not negative
	one.Attributes = e.attributes(s.attributes)
	if s.failed != nil && !errors.Is(s.failed, context.Canceled) {
		one.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.life.t.text(s.failed.Error())}
	}
	e.out = append(e.out, one)
	return one
}

// id is that of a span that no other daemon knows.
func (e *encoder) id() []byte {
	id := e.ids.next()[:]
	binary.BigEndian.PutUint64(id, 1+rand.Uint64N(math.MaxUint64)) // 0 is no id
	return id
}

func (e *encoder) attributes(list []attribute.KeyValue) []*common.KeyValue {
	if len(list) == 0 {
		return nil
	}
	all := make([]*common.KeyValue, len(list))
	for i, a := range list {
		pair := e.pairs.next()
		pair.Key, pair.Value = string(a.Key), e.value(a.Value)
		all[i] = pair
	}
	return all
}

func (e *encoder) value(v attribute.Value) *common.AnyValue {
	one := e.values.next()
	switch v.Type() {
	case attribute.INT64:
		one.Value = &common.AnyValue_IntValue{IntValue: v.AsInt64()}
	case attribute.FLOAT64:
		one.Value = &common.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}
	default:
		text := e.texts.next()
		text.StringValue = v.String()
		one.Value = text
	}
	return one
}
