package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// identity is that of a span which several daemons know: made of what the tree says, so that
// the daemon that goes on with a record goes on with its trace.
type identity struct {
	trace trace.TraceID
	span  trace.SpanID
}

// identify makes the identity of a record. Its path comes again in other trees, and after a
// restore; the rest does not.
func identify(path string, stat recipe.Stat, more string) identity {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", path, stat.Czxid, stat.Ctime.UnixMilli(), more))
	return identity{trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])}
}

// asked is the span in which Zuul asked for a request; an invalid one where it wrote none, or
// one that cannot be read. Zuul writes numbers of 128 and 64 bits, as its library has them;
// digits of base 16, as the protocol has them, are read, too.
//
// Source: docs/wire.md §3.4, requestor_data; Zuul's lib/tracing.py.
func asked(r *zkmodel.Request) trace.SpanContext {
	var data struct {
		Info *struct {
			Trace json.RawMessage `json:"trace_id"`
			Span  json.RawMessage `json:"span_id"`
			Flags byte            `json:"trace_flags"`
		} `json:"span_info"`
	}
	text := r.RequestorData.Text()
	if !strings.Contains(text, "span_info") || json.Unmarshal([]byte(text), &data) != nil || data.Info == nil {
		return trace.SpanContext{}
	}
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(data.Info.Flags), Remote: true}
	if !fill(c.TraceID[:], data.Info.Trace) || !fill(c.SpanID[:], data.Info.Span) {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(c)
}

// fill reads a number, or a text of digits of base 16 that fill all there is.
func fill(to []byte, text json.RawMessage) bool {
	var digits string
	if json.Unmarshal(text, &digits) == nil {
		read, err := hex.DecodeString(digits)
		return err == nil && len(read) == len(to) && copy(to, read) > 0
	}
	n, ok := new(big.Int).SetString(string(text), 10)
	if !ok || n.Sign() <= 0 || n.BitLen() > 8*len(to) {
		return false
	}
	n.FillBytes(to)
	return true
}

// wanted is the key of the identity that the next span is to have.
type wanted struct{}

// generator gives a life its identity, by which the library decides whether it is recorded.
type generator struct{}

func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(wanted{}).(identity)
	return id.trace, id.span
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(wanted{}).(identity)
	return id.span
}
