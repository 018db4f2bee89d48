package trace_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/trace"
)

// BenchmarkRequest measures what the trace of a request with one node costs, all 14 spans of it:
// until it is sent to a collector that reads and nothing else, which is a part of the figure.
func BenchmarkRequest(b *testing.B) {
	waste := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(waste.Close)
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", waste.URL)
	b.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", fmt.Sprint(20*b.N))
	tracer, err := trace.Open(b.Context(), trace.About{Service: "poolkeeper-launcher"}, func(s string) string { return s }, func(_ int, err error) { b.Error(err) })
	if err != nil {
		b.Fatal(err)
	}
	r := request(b, "null")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		launch(tracer, r)
	}
	if err := tracer.Close(b.Context()); err != nil {
		b.Error(err)
	}
}

// launch tells of a request as a launcher does.
func launch(tracer *trace.Tracer, r *zkmodel.Request) {
	span := tracer.Request(r, "serve", 0).Set("provider", "cloud").Set("pool", "main")
	span.Next("accept")
	span.Next("begin")
	node := span.Next("launch").Begin("node").Set("node", "0000000001").Set("label", "small").Set("provider", "cloud").Set("pool", "main")
	attempt := node.Next("attempt").SetInt("attempt", 1)
	for _, name := range []string{"create", "boot", "host keys", "record"} {
		attempt.Next(name)
	}
	attempt.Set("image", "debian-0000000001").Set("external_id", "8f14e45f-ceea-467f-9575-5d3c3f1f0f3b").End(nil)
	node.Next("conclude")
	node.End(nil)
	span.Next("settle")
	span.Over("fulfilled", "")
	span.Tell(nil)
}
