package figures

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/zkmodel/recipe"
)

// ZooKeeper tells of a client: whether it has a session, how long that can be trusted, and
// how long requests take. It implements prometheus.Collector.
type ZooKeeper struct {
	client         *recipe.Client
	session, lease *prometheus.Desc
	sessions       *prometheus.Desc
	latency        *prometheus.HistogramVec
}

// NewZooKeeper makes one, and has the client tell it of requests.
func NewZooKeeper(client *recipe.Client) *ZooKeeper {
	z := &ZooKeeper{
		client:   client,
		session:  prometheus.NewDesc("poolkeeper_zookeeper_session", "1 while there is a session with ZooKeeper, else 0.", nil, nil),
		lease:    prometheus.NewDesc("poolkeeper_zookeeper_lease_seconds", "How long the session can be trusted without another word from a server.", nil, nil),
		sessions: prometheus.NewDesc("poolkeeper_zookeeper_sessions_total", "Sessions with ZooKeeper that have begun.", nil, nil),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "poolkeeper_zookeeper_request_seconds", Help: "How long requests to ZooKeeper took, by what they did.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"operation"}),
	}
	for _, operation := range []string{"read", "write"} {
		z.latency.WithLabelValues(operation)
	}
	client.SetObserver(func(writes bool, took time.Duration) {
		operation := "read"
		if writes {
			operation = "write"
		}
		z.latency.WithLabelValues(operation).Observe(took.Seconds())
	})
	return z
}

// Describe implements prometheus.Collector.
func (z *ZooKeeper) Describe(out chan<- *prometheus.Desc) {
	out <- z.session
	out <- z.lease
	out <- z.sessions
	z.latency.Describe(out)
}

// Collect implements prometheus.Collector.
func (z *ZooKeeper) Collect(out chan<- prometheus.Metric) {
	state := z.client.State()
	out <- prometheus.MustNewConstMetric(z.session, prometheus.GaugeValue, number(state.Alive))
	out <- prometheus.MustNewConstMetric(z.lease, prometheus.GaugeValue, max(state.Left, 0).Seconds())
	out <- prometheus.MustNewConstMetric(z.sessions, prometheus.CounterValue, float64(state.Sessions))
	z.latency.Collect(out)
}
