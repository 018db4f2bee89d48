package history

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"
)

// Figures is how large a file is.
type Figures struct {
	Bytes   int64     // of the file
	Entries int64     // that have ended
	Oldest  time.Time // when the first of those that have ended did; zero without any
}

// Figures reads how large the file is.
func (s *Store) Figures() (f Figures, err error) {
	err = s.use(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			f.Bytes, f.Entries = tx.Size(), numberOf(tx.Bucket(metaBucket).Get(countKey))
			key, _ := tx.Bucket(endedBucket).Cursor().First()
			f.Oldest, _, _, _ = placed(key)
			return nil
		})
	})
	return f, err
}

// Times are the states of a thing whose record is there, and since when it was in each, as far as they were
// seen; nil where nothing is known of it.
func (s *Store) Times(kind Kind, id string) (times []Moment, err error) {
	err = s.use(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			e := Entry{Kind: kind, ID: id}
			data := tx.Bucket(openBucket).Get([]byte(e.key()))
			if data == nil {
				return nil
			}
			if err := json.Unmarshal(data, &e); err != nil {
				return fmt.Errorf("%w: entry %s: %w", ErrDamaged, e.key(), err)
			}
			times = e.Times
			return nil
		})
	})
	return times, err
}

// What a Store tells as metrics.
var (
	bytesDesc   = prometheus.NewDesc("poolkeeper_history_bytes", "Size of the file of the history.", nil, nil)
	entriesDesc = prometheus.NewDesc("poolkeeper_history_entries", "Builds, uploads, requests and nodes that have ended, in the history.", nil, nil)
	oldestDesc  = prometheus.NewDesc("poolkeeper_history_oldest_timestamp_seconds", "When the first of them ended.", nil, nil)
	failedDesc  = prometheus.NewDesc("poolkeeper_history_write_errors_total", "Times that the history could not be written.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{bytesDesc, entriesDesc, oldestDesc, failedDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Of a file that cannot be read it has the errors alone.
func (s *Store) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(failedDesc, prometheus.CounterValue, float64(s.failures.Load()))
	f, err := s.Figures()
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(bytesDesc, prometheus.GaugeValue, float64(f.Bytes))
	out <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(f.Entries))
	if !f.Oldest.IsZero() {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, float64(f.Oldest.Unix()))
	}
}
