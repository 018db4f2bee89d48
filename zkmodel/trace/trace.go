// Package trace tells a collector of OpenTelemetry where the time of a request or of a build
// went, where the environment names one.
package trace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// queue is how many spans may wait to be sent; what is more is lost.
	queue = 8192
	// closeTime is how long the last spans may take to be sent when a daemon stops.
	closeTime = 2 * time.Second
)

// About is what a collector is told of the process.
type About struct{ Service, Version, Host string }

// Tracer tells spans. A nil one makes nil spans, and these cost nothing.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	mask     func(string) string

	mu   sync.Mutex
	dues dues
}

// Open makes a Tracer that sends over HTTP to the collector of the environment. mask takes
// secrets out of texts. failed is told when spans could not be sent, and once more, with nil,
// when they can be again; what could not be sent is lost.
func Open(ctx context.Context, about About, mask func(string) string, failed func(error)) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin to send traces: %w", err)
	}
	return New(sdk.NewBatchSpanProcessor(&told{SpanExporter: exporter, failed: failed}, atLeast), about, mask), nil
}

// atLeast makes the queue longer than the library's where nobody has asked for another:
// many requests may end at once.
func atLeast(o *sdk.BatchSpanProcessorOptions) {
	if o.MaxQueueSize == sdk.DefaultMaxQueueSize {
		o.MaxQueueSize = queue
	}
}

// New makes a Tracer whose spans go to a processor.
func New(to sdk.SpanProcessor, about About, mask func(string) string) *Tracer {
	res := resource.NewSchemaless(attribute.String("service.name", about.Service),
		attribute.String("service.version", about.Version), attribute.String("host.name", about.Host))
	if merged, err := resource.Merge(res, resource.Environment()); err == nil { // what the environment says wins
		res = merged
	}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(to), sdk.WithIDGenerator(generator{}), sdk.WithResource(res))
	return &Tracer{tracer: provider.Tracer("poolkeeper"), provider: provider, mask: mask}
}

// On reports whether anything is told.
func (t *Tracer) On() bool { return t != nil }

// Close sends what waits, for two seconds at most, and ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// told is an exporter whose failures are told once each time that they begin.
type told struct {
	sdk.SpanExporter
	failed func(error)
	fails  atomic.Bool
}

// ExportSpans sends spans. It never fails: what could not be sent is lost.
func (e *told) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if fails := err != nil; e.fails.Swap(fails) != fails && !errors.Is(err, context.Canceled) {
		e.failed(err)
	}
	return nil
}
