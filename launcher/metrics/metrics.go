// Package metrics is the figures of a launcher: what it counts, and what it tells of
// nodes, requests and limits when it is asked.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/configs/statsd"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Metrics are the figures of one launcher. Every method may be called at any time.
type Metrics struct {
	launches, requests, declines, deletes, leaks *prometheus.CounterVec
	launchTime, waitTime                         *prometheus.HistogramVec
	duties                                       *prometheus.GaugeVec
	now                                          *gauges
	stats                                        *statsd.Client // nil is none
}

// New makes the figures known to reg, which may be nil. Where a launcher before us, with
// another configuration, has registered its own there, it goes on with those. It fails
// when their names are taken by something else. What Nodepool sends to statsd goes to stats,
// which may be nil.
func New(reg prometheus.Registerer, stats *statsd.Client) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "poolkeeper", Subsystem: "launcher", Name: name, Help: help,
		}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "poolkeeper", Subsystem: "launcher", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 16),
		}, labels)
	}
	m := &Metrics{
		stats:      stats,
		launches:   counter("launches_total", "Attempts to launch a node.", "provider", "pool", "result"),
		requests:   counter("requests_total", "Requests that came to an end in a pool.", "provider", "pool", "result"),
		declines:   counter("declines_total", "Requests declined, by the state that they went to.", "state"),
		deletes:    counter("nodes_deleted_total", "Nodes deleted.", "provider"),
		leaks:      counter("leaked_nodes_total", "Machines without a record that were deleted.", "provider"),
		launchTime: seconds("launch_seconds", "Duration of an attempt to launch a node.", "provider", "pool", "result"),
		duties: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "poolkeeper", Subsystem: "launcher", Name: "duty",
			Help: "1 while this launcher does for all what one of them does: tidy, offers, provider (limits and leaks, or static nodes), stock.",
		}, []string{"duty", "of"}),
		now:      newGauges(),
		waitTime: seconds("request_seconds", "Age of a request when it was fulfilled.", "provider", "pool"),
	}
	if reg == nil {
		return m, nil
	}
	var err error
	for _, c := range []**prometheus.CounterVec{&m.launches, &m.requests, &m.declines, &m.deletes, &m.leaks} {
		err = errors.Join(err, adopt(reg, c))
	}
	for _, h := range []**prometheus.HistogramVec{&m.launchTime, &m.waitTime} {
		err = errors.Join(err, adopt(reg, h))
	}
	err = errors.Join(err, adopt(reg, &m.duties), adopt(reg, &m.now))
	m.now.series.counted(m.launches, m.requests, m.deletes, m.leaks, m.launchTime, m.waitTime)
	return m, err
}

// adopt registers a figure, or goes on with the one that a launcher before us,
// with another configuration, has registered.
func adopt[T prometheus.Collector](reg prometheus.Registerer, figure *T) error {
	err := reg.Register(*figure)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := known.ExistingCollector.(T); ok {
			*figure = same
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// launch counts an attempt to launch a node in a pool, how it ended, and how long it took.
func (m *Metrics) launch(p *pool.Pool, ended error, took time.Duration) {
	m.now.series.note(p.Provider.Name, p.Section.Name)
	result := launchResult(ended)
	m.launches.WithLabelValues(p.Provider.Name, p.Section.Name, result).Inc()
	m.launchTime.WithLabelValues(p.Provider.Name, p.Section.Name, result).Observe(took.Seconds())
}

// Fulfilled counts a request that has its nodes, and how old it was then.
func (m *Metrics) Fulfilled(p *pool.Pool, age time.Duration) {
	m.request(p, "fulfilled")
	m.waitTime.WithLabelValues(p.Provider.Name, p.Section.Name).Observe(max(age, 0).Seconds())
}

// Cancelled counts a request whose requestor has left.
func (m *Metrics) Cancelled(p *pool.Pool) { m.request(p, "cancelled") }

func (m *Metrics) request(p *pool.Pool, result string) {
	m.now.series.note(p.Provider.Name, p.Section.Name)
	m.requests.WithLabelValues(p.Provider.Name, p.Section.Name, result).Inc()
}

// Declined counts a request that was declined, by the state that it went to.
func (m *Metrics) Declined(to zkmodel.RequestState) { m.declines.WithLabelValues(string(to)).Inc() }

// Deleted counts a node of a provider that was deleted.
func (m *Metrics) Deleted(provider string) {
	m.now.series.note(provider, "")
	m.deletes.WithLabelValues(provider).Inc()
}

// Leaked counts a machine without a record that was deleted.
func (m *Metrics) Leaked(provider string) {
	m.now.series.note(provider, "")
	m.leaks.WithLabelValues(provider).Inc()
	m.stats.Count("nodepool.provider", provider, "leaked", providers.Instances)
}

// Duty notes whether this launcher has a duty of a provider or a label; "" where it is of
// all.
func (m *Metrics) Duty(duty, of string, has bool) {
	value := 0.0
	if has {
		value = 1
	}
	m.duties.WithLabelValues(duty, of).Set(value)
}

// NoDuties forgets all duties: a launcher with another configuration may have others.
func (m *Metrics) NoDuties() { m.duties.Reset() }

// Tell has the gauges tell of a launcher from now on, whose counters begin at 0 where
// there are none yet.
func (m *Metrics) Tell(of *Source) {
	m.now.source.Store(of)
	m.zero(of.Config)
}

// zero makes the counters of our providers known before they count.
func (m *Metrics) zero(cfg *configs.Config) {
	for _, p := range cfg.Providers {
		m.now.series.note(p.Name, "")
		m.deletes.WithLabelValues(p.Name)
		m.leaks.WithLabelValues(p.Name)
		for _, section := range p.Pools {
			m.now.series.note(p.Name, section.Name)
			m.requests.WithLabelValues(p.Name, section.Name, "fulfilled")
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(nil))
			m.launches.WithLabelValues(p.Name, section.Name, launchResult(providers.ErrQuota))
		}
	}
}

// launchResult is the name of a launch's outcome, as Nodepool's metrics have it.
func launchResult(err error) string {
	switch {
	case err == nil:
		return "ready"
	case errors.Is(err, providers.ErrQuota), errors.Is(err, providers.ErrGivesWay):
		return "error.quota"
	case errors.Is(err, node.ErrKeyScan):
		return "error.keyscan"
	case errors.Is(err, pool.ErrNoImage), errors.Is(err, providers.ErrNotFound):
		return "error.image"
	case errors.Is(err, providers.ErrNodeFailed):
		return "error.status"
	case errors.Is(err, context.DeadlineExceeded):
		return "error.servercreatetimeout"
	}
	return "error.unknown"
}
