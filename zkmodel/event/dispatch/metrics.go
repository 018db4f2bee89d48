package dispatch

import (
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/zkmodel/recipe"
)

// metrics are the figures of one daemon.
type metrics struct {
	dispatcher prometheus.Gauge
	trimmed    prometheus.Counter
	all        []prometheus.Collector
}

func newMetrics(client *recipe.Client) *metrics {
	m := &metrics{
		dispatcher: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "poolkeeper_events_dispatcher", Help: "1 while this daemon dispatches events.",
		}),
		trimmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "poolkeeper_events_trimmed_total", Help: "Events that were deleted because of their number or age.",
		}),
	}
	untold := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "poolkeeper_events_untold_total", Help: "Changes whose event could not be written because of ZooKeeper's access rights.",
	}, func() float64 {
		if log := client.Log(); log != nil {
			return float64(log.Untold())
		}
		return 0
	})
	m.all = []prometheus.Collector{m.dispatcher, m.trimmed, untold}
	return m
}

// Describe implements prometheus.Collector.
func (s *Service) Describe(out chan<- *prometheus.Desc) {
	for _, c := range s.metrics.all {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (s *Service) Collect(out chan<- prometheus.Metric) {
	for _, c := range s.metrics.all {
		c.Collect(out)
	}
}

func (m *metrics) leads(is bool) {
	if is {
		m.dispatcher.Set(1)
		return
	}
	m.dispatcher.Set(0)
}

func (m *metrics) dropped(n int64) { m.trimmed.Add(float64(n)) }
