package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What a provider's page says of figures: how long its cloud takes first, times as times, and nothing of what never
// happened. Mistake: the one line that matters stands below thirty zeros.
func TestFiguresForPeople(t *testing.T) {
	registry := prometheus.NewRegistry()
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "poolkeeper_errors_total", Help: "Errors."}, []string{"provider", "reason"})
	count.WithLabelValues("north", "quota").Add(3)
	count.WithLabelValues("north", "timeout").Add(0)
	count.WithLabelValues("south", "quota").Add(9)
	when := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "poolkeeper_image_ready_timestamp_seconds", Help: "When."}, []string{"provider"})
	when.WithLabelValues("north").Set(1795430000)
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "poolkeeper_provider_call_seconds", Help: "Calls."}, []string{"provider", "operation"})
	calls.WithLabelValues("north", "GET servers").Observe(0.25)
	calls.WithLabelValues("north", "GET servers").Observe(0.75)
	registry.MustRegister(count, when, calls)
	var lines []string
	for _, f := range newHandler(Options{Gatherer: registry}).figures("provider", "north") {
		lines = append(lines, fmt.Sprint(f.Name, "|", f.Labels, "|", f.Value))
	}
	const want = `poolkeeper_provider_call_seconds|operation GET servers|2, 0.5 s each
poolkeeper_errors_total|reason quota|3
poolkeeper_image_ready_timestamp_seconds||2026-11-23 10:33 UTC`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
