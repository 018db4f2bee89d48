package builder

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// metrics are what a builder counts and measures.
type metrics struct {
	builds    *prometheus.CounterVec   // by image and result
	buildTime *prometheus.GaugeVec     // by image and phase: seconds of the last build
	size      *prometheus.GaugeVec     // by image and format: bytes of the last build
	lastBuild *prometheus.GaugeVec     // by image: when it was ready
	requested *prometheus.GaugeVec     // by image: 1 while somebody waits
	building  prometheus.Gauge         // under way here
	uploads   *prometheus.CounterVec   // by image, provider and result
	uploadIn  *prometheus.HistogramVec // by provider: seconds
	uploading prometheus.Gauge         // under way here
	errors    *prometheus.CounterVec   // by kind of action
	leaks     *prometheus.CounterVec   // by provider
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const ns = "poolkeeper_builder"
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: ns, Name: name, Help: help}
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
	}
	m := &metrics{
		builds:    counters("builds_total", "Builds that ended on this builder.", "image", "result"),
		buildTime: gauges("build_phase_seconds", "How long the phases of an image's last build took.", "image", "phase"),
		size:      gauges("image_bytes", "Size of the files of an image's last build.", "image", "format"),
		lastBuild: gauges("last_build_timestamp_seconds", "When an image's last build was ready.", "image"),
		requested: gauges("build_requested", "Whether somebody waits for a build of the image.", "image"),
		building:  prometheus.NewGauge(prometheus.GaugeOpts(opts("current_builds", "Builds under way."))),
		uploads:   counters("uploads_total", "Uploads that ended on this builder.", "image", "provider", "result"),
		uploadIn: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "upload_seconds", Help: "How long uploads took.",
			Buckets: prometheus.ExponentialBuckets(0.1, 4, 10),
		}, []string{"provider"}),
		uploading: prometheus.NewGauge(prometheus.GaugeOpts(opts("current_uploads", "Uploads under way."))),
		leaks:     counters("leaked_images_total", "Images without a record that were deleted from clouds.", "provider"),
		errors:    counters("errors_total", "Actions that could not be done and are tried again.", "action"),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.builds, m.buildTime, m.size, m.lastBuild, m.requested, m.building, m.uploads, m.uploadIn, m.uploading, m.errors, m.leaks,
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) look(in plan.Input) {
	waits := 0.0
	if in.Image.BuildRequested != nil {
		waits = 1
	}
	m.requested.WithLabelValues(in.Image.Name).Set(waits)
}

func (m *metrics) buildBegins() { m.building.Inc() }
func (m *metrics) buildEnds()   { m.building.Dec() }

func (m *metrics) built(b *zkmodel.Build) {
	m.builds.WithLabelValues(b.Image, "ready").Inc()
	m.lastBuild.WithLabelValues(b.Image).Set(float64(b.StateTime))
	m.phases(b)
	for format, file := range b.Files {
		m.size.WithLabelValues(b.Image, format).Set(float64(file.Size))
	}
}

func (m *metrics) failedBuild(b *zkmodel.Build) {
	m.builds.WithLabelValues(b.Image, "failed").Inc()
	m.phases(b)
}

func (m *metrics) phases(b *zkmodel.Build) {
	for phase, seconds := range b.Phases {
		m.buildTime.WithLabelValues(b.Image, phase).Set(seconds)
	}
}

func (m *metrics) uploadBegins() { m.uploading.Inc() }
func (m *metrics) uploadEnds()   { m.uploading.Dec() }

func (m *metrics) uploaded(u *zkmodel.Upload, took time.Duration) {
	m.uploads.WithLabelValues(u.Image, u.Provider, "ready").Inc()
	m.uploadIn.WithLabelValues(u.Provider).Observe(took.Seconds())
}

func (m *metrics) failedUpload(u *zkmodel.Upload) {
	m.uploads.WithLabelValues(u.Image, u.Provider, "failed").Inc()
}

func (m *metrics) leaked(provider string) { m.leaks.WithLabelValues(provider).Inc() }

func (m *metrics) failed(kind plan.Kind) { m.errors.WithLabelValues(string(kind)).Inc() }
