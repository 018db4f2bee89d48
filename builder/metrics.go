package builder

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// metrics are what a builder counts and measures.
type metrics struct {
	builds    *prometheus.CounterVec   // by image and result
	buildTime *prometheus.GaugeVec     // by image and phase: seconds of the last build
	size      *prometheus.GaugeVec     // by image and format: bytes of the last build
	lastBuild *prometheus.GaugeVec     // by image: when it was ready
	requested *prometheus.GaugeVec     // by image: 1 while a build is asked for
	building  prometheus.Gauge         // under way here
	uploads   *prometheus.CounterVec   // by image, provider and result
	uploadIn  *prometheus.HistogramVec // by provider: seconds
	uploading prometheus.Gauge         // under way here
	unfit     prometheus.Gauge         // 1 while this host cannot build
	clock     prometheus.Gauge         // seconds that our clock is early
	errors    *prometheus.CounterVec   // by kind of action
	leaks     *prometheus.CounterVec   // by provider
	usable    *prometheus.GaugeVec     // by provider: 1 while it can be used
	due       *prometheus.GaugeVec     // by image: when it is to be built
	free      *prometheus.GaugeVec     // bytes that builds may write here; no line while nobody knows
	reserve   prometheus.Gauge         // bytes that are to stay free
	queue     *prometheus.GaugeVec     // by action: how many wait
	driving   prometheus.Gauge         // waves that are driven here
	waves     *prometheus.CounterVec   // by result
	waveJobs  *prometheus.CounterVec   // by result
	sources   *prometheus.CounterVec   // looks, by source and result
	failing   *prometheus.GaugeVec     // sources whose last look here has failed
	tried     *prometheus.CounterVec   // by image, provider and result
	trials    *prometheus.GaugeVec     // by provider and state
	untried   *prometheus.GaugeVec     // by provider: seconds
	series    series
	stats     *stats
}

func newMetrics(r prometheus.Registerer, s *stats) (*metrics, error) {
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
		stats:     s,
		builds:    counters("builds_total", "Builds that ended on this builder.", "image", "result"),
		buildTime: gauges("build_phase_seconds", "How long the phases of an image's last build took.", "image", "phase"),
		size:      gauges("image_bytes", "Size of the files of an image's last build.", "image", "format"),
		lastBuild: gauges("last_build_timestamp_seconds", "When an image's last build was ready.", "image"),
		requested: gauges("build_requested", "Whether a build of the image is asked for.", "image"),
		building:  prometheus.NewGauge(prometheus.GaugeOpts(opts("current_builds", "Builds under way."))),
		uploads:   counters("uploads_total", "Uploads that ended on this builder.", "image", "provider", "result"),
		uploadIn: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "upload_seconds", Help: "How long uploads took.",
			Buckets: prometheus.ExponentialBuckets(0.1, 4, 10),
		}, []string{"provider"}),
		uploading: prometheus.NewGauge(prometheus.GaugeOpts(opts("current_uploads", "Uploads under way."))),
		unfit:     prometheus.NewGauge(prometheus.GaugeOpts(opts("withdrawn", "Whether this host cannot build, so that builds are left to others."))),
		clock:     prometheus.NewGauge(prometheus.GaugeOpts(opts("clock_offset_seconds", "How far the clock of this host is ahead of ZooKeeper's."))),
		leaks:     counters("leaked_images_total", "Images without a record that were deleted from clouds.", "provider"),
		usable:    gauges("provider_usable", "1 while this builder has met nothing that keeps it from using the provider, else 0; page, explain and log say why.", "provider"),
		due:       gauges("image_due_timestamp_seconds", "When the image is to be built anew by its schedule or age, or was asked for; in the past while it waits.", "image"),
		free:      gauges("disk_free_bytes", "Free space of images-dir."),
		reserve:   prometheus.NewGauge(prometheus.GaugeOpts(opts("disk_reserve_bytes", "Space that builds leave free, by build-disk-reserve."))),
		queue:     gauges("waiting_actions", "Builds, uploads and deletions of uploads that wait for a worker.", "action"),
		driving:   prometheus.NewGauge(prometheus.GaugeOpts(opts("waves_driven", "Waves that this builder drives."))),
		waves:     counters("waves_total", "Waves that ended on this builder.", "result"),
		waveJobs:  counters("wave_jobs_total", "Jobs of waves that ended on this builder.", "result"),
		sources:   counters("source_looks_total", "Looks at sources by this builder: same, changed or failed.", "source", "result"),
		failing:   gauges("source_failing", "1 while the last look at the source by this builder has failed.", "source"),
		tried:     counters("validations_total", "Trials of uploads that ended on this builder.", "image", "provider", "result"),
		trials:    gauges("validations", "Uploads that are tried before they serve.", "provider", "state"),
		untried:   gauges("validation_untried_seconds", "For how long the one has waited that nobody has tried for longest.", "provider"),
		errors:    counters("errors_total", "Actions that could not be done and are tried again.", "action"),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.builds, m.buildTime, m.size, m.lastBuild, m.requested, m.building, m.uploads, m.uploadIn, m.uploading, m.errors, m.leaks, m.unfit,
		m.usable, m.clock, m.driving, m.waves, m.waveJobs, m.sources, m.failing,
		m.tried, m.trials, m.untried,
		m.due, m.free, m.reserve, m.queue,
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) Snapshot(in plan.Input) {
	waits := 0.0
	if in.Image.BuildRequested != nil {
		waits = 1
	}
	// What is gone may leave its folder in the tree, and gets no line for that.
	if _, configured := in.Config.DiskImage(in.Image.Name); configured || recorded(in.Image) || len(in.Local) > 0 {
		m.series.note(in.Image.Name, "")
		m.requested.WithLabelValues(in.Image.Name).Set(waits)
	}
	if in.Host.Free >= 0 {
		m.free.WithLabelValues().Set(float64(in.Host.Free))
	} else {
		m.free.Reset()
	}
	m.reserve.Set(float64(in.Config.BuildDiskReserve))
}

// Due takes over when an image is to be built next; zero is never, or nobody knows.
func (m *metrics) Due(image string, at time.Time) {
	if at.IsZero() {
		m.due.DeleteLabelValues(image)
		return
	}
	m.series.note(image, "")
	m.due.WithLabelValues(image).Set(float64(at.UnixNano()) / 1e9)
}

// Waiting takes over how many actions wait, by kind; of those that take long.
func (m *metrics) Waiting(counts map[plan.Kind]int) {
	for _, kind := range []plan.Kind{plan.Build, plan.Upload, plan.DeleteUpload} {
		m.queue.WithLabelValues(string(kind)).Set(float64(counts[kind]))
	}
}

func (m *metrics) Withdrawn(is bool) {
	if is {
		m.unfit.Set(1)
	} else {
		m.unfit.Set(0)
	}
}

func (m *metrics) BuildBegins(image string) {
	m.building.Inc()
	m.stats.builds(image, 1)
}

func (m *metrics) BuildEnds(image string) {
	m.building.Dec()
	m.stats.builds(image, -1)
}

func (m *metrics) Built(b *zkmodel.Build, files map[string]disk.File) {
	m.stats.built(b, files)
	m.series.note(b.Image, "")
	m.builds.WithLabelValues(b.Image, "ready").Inc()
	m.lastBuild.WithLabelValues(b.Image).Set(float64(b.StateTime))
	m.phases(b)
	for format, file := range b.Files {
		m.size.WithLabelValues(b.Image, format).Set(float64(file.Size))
	}
}

func (m *metrics) FailedBuild(b *zkmodel.Build) {
	m.stats.built(b, nil)
	m.series.note(b.Image, "")
	m.builds.WithLabelValues(b.Image, "failed").Inc()
	m.phases(b)
}

func (m *metrics) phases(b *zkmodel.Build) {
	for phase, seconds := range b.Phases {
		m.buildTime.WithLabelValues(b.Image, phase).Set(seconds)
	}
}

func (m *metrics) Tried(u *zkmodel.Upload, end plan.TrialEnd) {
	m.series.note(u.Image, u.Provider)
	m.tried.WithLabelValues(u.Image, u.Provider, string(end)).Inc()
}

// Trials takes the figures of all uploads that are tried in some providers.
func (m *metrics) Trials(trials []*zkmodel.Validation, now time.Time) {
	m.trials.Reset()
	m.untried.Reset()
	longest := map[string]float64{}
	for _, v := range trials {
		if v.Broken != nil || v.Canary {
			continue
		}
		m.trials.WithLabelValues(v.Provider, string(v.State())).Inc()
		if since := v.Untried(); !since.IsZero() {
			longest[v.Provider] = max(longest[v.Provider], now.Sub(since).Seconds())
		}
	}
	for provider, seconds := range longest {
		m.untried.WithLabelValues(provider).Set(seconds)
	}
}

func (m *metrics) UploadBegins(image, provider string) {
	m.uploading.Inc()
	m.stats.uploads(image, provider, 1)
}

func (m *metrics) UploadEnds(image, provider string) {
	m.uploading.Dec()
	m.stats.uploads(image, provider, -1)
}

func (m *metrics) Uploaded(u *zkmodel.Upload, took time.Duration) {
	m.stats.uploaded(u, took)
	m.series.note(u.Image, u.Provider)
	m.uploads.WithLabelValues(u.Image, u.Provider, "ready").Inc()
	m.uploadIn.WithLabelValues(u.Provider).Observe(took.Seconds())
}

func (m *metrics) FailedUpload(u *zkmodel.Upload) {
	m.series.note(u.Image, u.Provider)
	m.uploads.WithLabelValues(u.Image, u.Provider, "failed").Inc()
}

func (m *metrics) Leaked(provider string) {
	m.series.note("", provider)
	m.leaks.WithLabelValues(provider).Inc()
}

func (m *metrics) Failed(kind plan.Kind) { m.errors.WithLabelValues(string(kind)).Inc() }

// ClockOff takes over how far the clock of this host is ahead of ZooKeeper's.
func (m *metrics) ClockOff(by time.Duration) { m.clock.Set(by.Seconds()) }

// Driving takes over how many waves are driven here.
func (m *metrics) Driving(n int) { m.driving.Set(float64(n)) }

// WaveJob counts a job of a wave that is over.
func (m *metrics) WaveJob(state wave.State) { m.waveJobs.WithLabelValues(string(state)).Inc() }

// SourceLooked counts a look at a source.
func (m *metrics) SourceLooked(source, result string) {
	m.series.noteSource(source)
	m.sources.WithLabelValues(source, result).Inc()
	failing := 0.0
	if result == "failed" {
		failing = 1
	}
	m.failing.WithLabelValues(source).Set(failing)
}

// SourcesAre takes out the figures of sources that are no more.
func (m *metrics) SourcesAre(is func(name string) bool) {
	for _, name := range m.series.goneSources(is) {
		m.sources.DeletePartialMatch(prometheus.Labels{"source": name})
		m.failing.DeleteLabelValues(name)
	}
}

// SourcesLeft takes out what another builder says from now on.
func (m *metrics) SourcesLeft() { m.failing.Reset() }

// WaveEnded counts a wave that is over.
func (m *metrics) WaveEnded(state wave.State) { m.waves.WithLabelValues(string(state)).Inc() }
