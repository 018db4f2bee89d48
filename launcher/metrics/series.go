package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher/schedule"
)

// series remembers which pools the counters tell of: what has gone from configuration
// and tree is to leave no line behind.
type series struct {
	mu    sync.Mutex
	known map[schedule.PoolKey]bool // pool "" is the provider's own
	vecs  []partial
}

// partial is a figure whose lines can be deleted by some of their labels.
type partial interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// counted says which figures have lines by provider and pool.
func (s *series) counted(vecs ...partial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vecs = vecs
}

// note remembers a pool, and its provider.
func (s *series) note(provider, pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[schedule.PoolKey]bool{}
	}
	s.known[schedule.PoolKey{Provider: provider, Pool: ""}], s.known[schedule.PoolKey{Provider: provider, Pool: pool}] = true, true
}

// forget deletes the lines of pools that the launcher does not have and that have no nodes.
func (s *series) forget(of *Source, nodes map[nodeCount]int) {
	there := map[schedule.PoolKey]bool{}
	for name := range of.Usable {
		there[schedule.PoolKey{Provider: name, Pool: ""}] = true
	}
	for key := range nodes { // all of our pools among them
		there[schedule.PoolKey{Provider: key.provider, Pool: ""}], there[schedule.PoolKey{Provider: key.provider, Pool: key.pool}] = true, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if there[key] {
			continue
		}
		delete(s.known, key)
		labels := prometheus.Labels{"provider": key.Provider}
		if key.Pool != "" {
			labels["pool"] = key.Pool
		}
		for _, vec := range s.vecs {
			vec.DeletePartialMatch(labels)
		}
	}
}
