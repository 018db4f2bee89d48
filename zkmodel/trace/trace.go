// Package trace tells a collector of OpenTelemetry where the time of a request or of a build
// went, where the environment names one.
package trace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// closeTime is how long the last spans may take to be sent when a daemon stops.
const closeTime = 2 * time.Second

// About is what a collector is told of the process.
type About struct{ Service, Version, Host string }

// Tracer tells spans. A nil one makes nil spans, and these cost nothing.
type Tracer struct {
	// sampler is the library's, which decides over each life by what the environment asks for;
	// the spans that it makes are not used.
	sampler trace.Tracer
	sender  *sender
	mask    func(string) string

	mu   sync.Mutex
	dues dues
}

// Open makes a Tracer that sends over HTTP to the collector of the environment. mask takes
// secrets out of texts. told hears how many spans were lost since it was told last, and why:
// when that begins, and now and then while it goes on; with nil when they are sent again.
func Open(ctx context.Context, about About, mask func(string) string, told func(lost int, why error)) (*Tracer, error) {
	client, err := newCollector()
	if err != nil {
		return nil, fmt.Errorf("begin to send traces: %w", err)
	}
	res := resource.NewSchemaless(attribute.String("service.name", about.Service),
		attribute.String("service.version", about.Version), attribute.String("host.name", about.Host))
	if merged, err := resource.Merge(res, resource.Environment()); err == nil { // what the environment says wins
		res = merged
	}
	provider := sdk.NewTracerProvider(sdk.WithIDGenerator(generator{}))
	sender := send(client, res, told) //nolint:contextcheck // what waits is sent also when ctx has ended
	return &Tracer{sampler: provider.Tracer(scope), sender: sender, mask: mask}, nil
}

// On reports whether anything is told.
func (t *Tracer) On() bool { return t != nil }

// Counts is how many spans were sent, and how many were lost, by why.
func (t *Tracer) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	return t.sender.losses.counted()
}

// Close sends what waits, for two seconds at most, and ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := t.sender.close(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// recorded reports whether a life is to be told of, which all daemons decide alike.
func (t *Tracer) recorded(l *life) bool {
	ctx := context.WithValue(context.Background(), wanted{}, l.id)
	if l.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, l.parent)
	}
	_, span := t.sampler.Start(ctx, l.all.name)
	return span.IsRecording()
}

// text is a text as it may be sent: without secrets, and such as the protocol takes, as one
// that is not would cost all that is sent with it.
func (t *Tracer) text(s string) string { return strings.ToValidUTF8(t.mask(s), "�") }
