package dispatch

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/zkmodel/recipe"
)

// metrics are the figures of one daemon.
type metrics struct {
	dispatcher prometheus.Gauge
	trimmed    prometheus.Counter
	deliveries *prometheus.CounterVec
	failing    *prometheus.GaugeVec
	letters    *prometheus.CounterVec
	behind     *prometheus.Desc
	all        []prometheus.Collector

	mu   sync.Mutex
	ages map[string]time.Time // of what is in hand for each sink; zero is nothing
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
	m.behind = prometheus.NewDesc("poolkeeper_events_sink_behind_seconds", "Age of the event that a sink is being given; 0 while it has all.", []string{"sink"}, nil)
	m.deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "poolkeeper_events_deliveries_total", Help: "Tries to deliver an event to a sink, by result: ok or failed.",
	}, []string{"sink", "result"})
	m.failing = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "poolkeeper_events_sink_failing", Help: "1 while the last try of a sink has failed.",
	}, []string{"sink"})
	m.letters = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "poolkeeper_events_dead_letters_total", Help: "Events that a sink has refused.",
	}, []string{"sink"})
	untold := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "poolkeeper_events_untold_total", Help: "Changes whose event could not be written; the log says why.",
	}, func() float64 {
		if log := client.Log(); log != nil {
			return float64(log.Untold())
		}
		return 0
	})
	m.all = []prometheus.Collector{m.dispatcher, m.trimmed, m.deliveries, m.failing, m.letters, untold}
	return m
}

// Describe implements prometheus.Collector.
func (s *Service) Describe(out chan<- *prometheus.Desc) {
	out <- s.metrics.behind
	for _, c := range s.metrics.all {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector. Without options nothing is to be dispatched, so
// nothing is told of a dispatcher: a 0 on each daemon means that there should be one.
func (s *Service) Collect(out chan<- prometheus.Metric) {
	if options, _ := s.now(); options != nil {
		s.metrics.dispatcher.Collect(out)
	}
	for _, c := range s.metrics.all {
		if c != s.metrics.dispatcher {
			c.Collect(out)
		}
	}
	s.metrics.collectBehind(out, s.deps.Now())
}

// inHand notes of when the event is that a sink is being given; zero is none.
func (m *metrics) inHand(sink string, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ages == nil {
		m.ages = map[string]time.Time{}
	}
	m.ages[sink] = since
}

func (m *metrics) collectBehind(out chan<- prometheus.Metric, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for sink, since := range m.ages {
		age := 0.0
		if !since.IsZero() {
			age = max(0, now.Sub(since).Seconds())
		}
		out <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, age, sink)
	}
}

func (m *metrics) leads(is bool) {
	if is {
		m.dispatcher.Set(1)
		return
	}
	m.dispatcher.Set(0)
	m.failing.Reset()
	m.allLeft()
}

// allLeft forgets what is in hand: another daemon dispatches now, or other sinks are.
func (m *metrics) allLeft() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ages = nil
}

func (m *metrics) dropped(n int64) { m.trimmed.Add(float64(n)) }

// forget drops the series of sinks: others may be configured now, or dispatched elsewhere.
func (m *metrics) forget() {
	m.allLeft()
	m.failing.Reset()
	m.deliveries.Reset()
	m.letters.Reset()
}

// tried counts a try.
func (m *metrics) tried(sink string, err error) {
	result, failing := "ok", 0.0
	if err != nil {
		result, failing = "failed", 1
	}
	m.deliveries.WithLabelValues(sink, result).Inc()
	m.failing.WithLabelValues(sink).Set(failing)
}

func (m *metrics) died(sink string) { m.letters.WithLabelValues(sink).Inc() }
