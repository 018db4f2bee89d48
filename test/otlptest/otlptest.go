// Package otlptest is a collector of OpenTelemetry traces for tests: it keeps the spans that
// are sent to it over HTTP, and says what is wrong with a trace.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was sent.
type Span struct {
	Trace, ID, Parent string // digits of base 16; Parent is "" of a root
	Name              string
	From, To          time.Time
	Attributes        map[string]string
	Error             string
	Resource          map[string]string
}

// Collector is where spans are sent.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	headers http.Header
}

// Start starts one, for the time of a test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			tb.Errorf("collector: %v", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// take keeps the spans of one call.
func (c *Collector) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s of %s", r.URL.Path, r.Header.Get("Content-Type"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(r.Body); err != nil {
			return err
		}
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(body); err != nil {
		return err
	}
	spans, err := Decode(data.Bytes())
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header.Clone()
	c.spans = append(c.spans, spans...)
	return nil
}

// Decode is the spans of one call.
func Decode(body []byte) (spans []Span, err error) {
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	for _, resource := range sent.GetResourceSpans() {
		about := texts(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				spans = append(spans, spanOf(s, about))
			}
		}
	}
	return spans, nil
}

func spanOf(s *tracepb.Span, about map[string]string) Span {
	one := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), From: time.Unix(0, int64(s.GetStartTimeUnixNano())), To: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Attributes: texts(s.GetAttributes()), Resource: about,
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		one.Error = s.GetStatus().GetMessage()
	}
	return one
}

func texts(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		if n, ok := a.GetValue().GetValue().(*common.AnyValue_DoubleValue); ok {
			all[a.GetKey()] = fmt.Sprint(n.DoubleValue)
			continue
		}
		if n, ok := a.GetValue().GetValue().(*common.AnyValue_IntValue); ok {
			all[a.GetKey()] = fmt.Sprint(n.IntValue)
			continue
		}
		all[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return all
}

// Header is a header of the last call.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Get(name)
}

// Spans are all that were sent.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Trace is the trace of the root span that has a name, and an attribute with a value.
func (c *Collector) Trace(name, key, value string) (t Trace, found bool) {
	all := c.Spans()
	for _, s := range all {
		if s.Name == name && s.Attributes[key] == value {
			t.Root, found = s, true
		}
	}
	for _, s := range all {
		if found && s.Trace == t.Root.Trace {
			t.Spans = append(t.Spans, s)
		}
	}
	return t, found
}

// Trace is all spans of one trace.
type Trace struct {
	Root  Span
	Spans []Span
}

// Named are the spans of a name, by their begin.
func (t Trace) Named(name string) []Span {
	list := slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return s.Name != name })
	slices.SortFunc(list, func(a, b Span) int { return a.From.Compare(b.From) })
	return list
}

// Untidy says what keeps it from being one tree below its root, or "".
func (t Trace) Untidy() string {
	ids := map[string]bool{}
	for _, s := range t.Spans {
		if ids[s.ID] {
			return "there are two of " + s.Name + " with one id"
		}
		ids[s.ID] = true
	}
	for _, s := range t.Spans {
		if s.ID != t.Root.ID && !ids[s.Parent] {
			return s.Name + " has a parent that is not there"
		}
		if s.To.Before(s.From) {
			return s.Name + " ends before it begins"
		}
	}
	return ""
}

// Gap is the longest piece of the root's time in which no span without parts was, and behind
// which span.
func (t Trace) Gap() (longest time.Duration, behind string) {
	parents := map[string]bool{}
	for _, s := range t.Spans {
		parents[s.Parent] = true
	}
	leaves := slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return parents[s.ID] })
	slices.SortFunc(leaves, func(a, b Span) int { return a.From.Compare(b.From) })
	at, name := t.Root.From, "the begin"
	for _, s := range append(leaves, Span{From: t.Root.To, To: t.Root.To}) {
		if gap := s.From.Sub(at); gap > longest {
			longest, behind = gap, name
		}
		if s.To.After(at) {
			at, name = s.To, s.Name
		}
	}
	return longest, behind
}

// String shows a trace as a tree, for people.
func (t Trace) String() string {
	var b strings.Builder
	t.write(&b, t.Root, 0)
	return b.String()
}

func (t Trace) write(b *strings.Builder, s Span, depth int) {
	fmt.Fprintf(b, "%s%s %v..%v %v %s\n", strings.Repeat("  ", depth), s.Name,
		s.From.Sub(t.Root.From).Round(time.Millisecond), s.To.Sub(t.Root.From).Round(time.Millisecond), s.Attributes, s.Error)
	parts := slices.DeleteFunc(slices.Clone(t.Spans), func(part Span) bool { return part.Parent != s.ID })
	slices.SortStableFunc(parts, func(a, b Span) int { return a.From.Compare(b.From) })
	for _, part := range parts {
		t.write(b, part, depth+1)
	}
}
