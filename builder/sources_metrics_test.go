package builder

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Mistakes: figures of sources that are gone, or of which another builder tells now, that
// ring for ever.
func TestFiguresOfSourcesGo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, newStats(nil, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	told := func() (lines []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, line := range f.GetMetric() {
				if !strings.Contains(f.GetName(), "_source_") {
					continue
				}
				words := []string{strings.TrimPrefix(f.GetName(), "poolkeeper_builder_source_")}
				for _, label := range line.GetLabel() {
					words = append(words, label.GetValue())
				}
				if line.GetGauge().GetValue() == 1 {
					words = append(words, "1")
				}
				lines = append(lines, strings.Join(words, " "))
			}
		}
		return lines
	}
	for _, name := range []string{"elements", "other", "gone"} {
		m.SourceLooked(name, "failed")
	}
	m.SourceLooked("other", "same")
	m.SourcesAre(func(name string) bool { return name != "gone" })
	looks := []string{"looks_total failed elements", "looks_total failed other", "looks_total same other"}
	if got := told(); !slices.Equal(got, append([]string{"failing elements 1", "failing other"}, looks...)) {
		t.Errorf("told %q", got)
	}
	m.SourcesLeft()
	if got := told(); !slices.Equal(got, looks) {
		t.Errorf("told %q after another builder looks", got)
	}
}
