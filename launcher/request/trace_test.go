package request

import (
	"context"
	"maps"
	"slices"
	"testing"

	"poolkeeper/test/otlptest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/trace"
)

// Mistake: the trace of a request that is taken over does not say so, nor why it waits again, or hides the time that its nodes take from
// who goes on with them.
func TestTakeOverIsTraced(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := trace.Open(t.Context(), trace.About{Service: "launcher"}, func(s string) string { return s }, func(_ int, err error) { t.Errorf("traces: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	r.Tracer = tracer
	begun, again := r.waiting("small"), r.waiting("small")
	r.takeOver(begun, r.node(zkmodel.NodeBuilding, "small", of(begun)))
	r.takeOver(again)
	if err := tracer.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	parts := map[string]map[string]otlptest.Span{begun.ID: {}, again.ID: {}} // by name, by request
	ids := map[string]string{}
	for _, s := range collector.Spans() {
		if id := s.Attributes["request"]; id != "" {
			ids[s.Trace] = id
		}
	}
	for _, s := range collector.Spans() {
		parts[ids[s.Trace]][s.Name] = s
	}
	served := parts[begun.ID]["serve"]
	if served.Attributes["provider"] != "here" || served.Attributes["pool"] != "main" || served.Error != "" {
		t.Errorf("served: %+v", served)
	}
	for id, want := range map[string][]string{begun.ID: {"serve", "take over", "begin", "launch", "settle"}, again.ID: {"serve", "take over"}} {
		for _, name := range want {
			if _, ok := parts[id][name]; !ok {
				t.Errorf("request %s has %q, and not %q", id, slices.Sorted(maps.Keys(parts[id])), name)
			}
		}
	}
	if failed := parts[again.ID]["serve"]; failed.Error != "its nodes cannot be gone on with; it waits again" {
		t.Errorf("begins again: %+v", failed)
	}
}
