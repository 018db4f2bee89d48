package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// metrics are the figures of one launcher.
type metrics struct {
	launches, requests, declines, deletes, leaks *prometheus.CounterVec
	launchTime, waitTime                         *prometheus.HistogramVec
	now                                          *gauges
}

// newMetrics makes the figures known to reg, which may be nil.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
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
	m := &metrics{
		launches:   counter("launches_total", "Attempts to launch a node.", "provider", "pool", "result"),
		requests:   counter("requests_total", "Requests that came to an end in a pool.", "provider", "pool", "result"),
		declines:   counter("declines_total", "Requests declined, by the state that they went to.", "state"),
		deletes:    counter("nodes_deleted_total", "Nodes deleted.", "provider"),
		leaks:      counter("leaked_nodes_total", "Machines without a record that were deleted.", "provider"),
		launchTime: seconds("launch_seconds", "Duration of an attempt to launch a node.", "provider", "pool", "result"),
		now:        newGauges(),
		waitTime:   seconds("request_seconds", "Age of a request when it was fulfilled.", "provider", "pool"),
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
	err = errors.Join(err, adopt(reg, &m.now))
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

func (m *metrics) launch(p *pool.Pool, result string, took time.Duration) {
	m.now.series.note(p.Provider.Name, p.Section.Name)
	m.launches.WithLabelValues(p.Provider.Name, p.Section.Name, result).Inc()
	m.launchTime.WithLabelValues(p.Provider.Name, p.Section.Name, result).Observe(took.Seconds())
}

func (m *metrics) request(p *pool.Pool, result string, age time.Duration) {
	m.now.series.note(p.Provider.Name, p.Section.Name)
	m.requests.WithLabelValues(p.Provider.Name, p.Section.Name, result).Inc()
	if result == "fulfilled" {
		m.waitTime.WithLabelValues(p.Provider.Name, p.Section.Name).Observe(max(age, 0).Seconds())
	}
}

func (m *metrics) declined(to zkmodel.RequestState) { m.declines.WithLabelValues(string(to)).Inc() }

func (m *metrics) deleted(provider string) {
	m.now.series.note(provider, "")
	m.deletes.WithLabelValues(provider).Inc()
}

func (m *metrics) leaked(provider string) {
	m.now.series.note(provider, "")
	m.leaks.WithLabelValues(provider).Inc()
}

// launchResult is the name of a launch's outcome, as Nodepool's metrics have it.
func launchResult(err error) string {
	switch {
	case err == nil:
		return "ready"
	case errors.Is(err, providers.ErrQuota):
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
