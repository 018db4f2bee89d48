package agent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs/guard"
)

// The kinds of daemons whose configuration is guarded.
const (
	kindBuilder  = "builder"
	kindLauncher = "launcher"
)

// guarded is what of a daemon's configuration file is not in effect, for those who
// show it. A nil one has nothing, and guards nothing.
type guarded struct {
	kind, host string // of the daemon

	mu    sync.Mutex
	file  string // that the items are about
	items []guard.Item
	doubt string // why nobody knows what was in effect before; "" when that is known
}

var guardedDesc = prometheus.NewDesc("poolkeeper_configuration_guarded",
	"Items of the configuration file that are not in effect until they are accepted.", []string{"kind"}, nil)

func (g *guarded) set(file string, items []guard.Item, doubt string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file, g.items, g.doubt = file, items, doubt
}

// texts are a line for each item.
func (g *guarded) texts() []string {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var lines []string
	if g.doubt != "" {
		lines = append(lines, "frozen, if it is not in the file: everything: "+g.doubt)
	}
	for _, i := range g.items {
		lines = append(lines, i.String()+" ("+i.Place(g.file)+")")
	}
	return lines
}

// doubted is why nobody knows what was in effect before.
func (g *guarded) doubted() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.doubt
}

// Describe is prometheus.Collector's.
func (g *guarded) Describe(out chan<- *prometheus.Desc) { out <- guardedDesc }

// Collect is prometheus.Collector's.
func (g *guarded) Collect(out chan<- prometheus.Metric) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[string]int{
		guard.KindImage: 0, guard.KindLabel: 0, guard.KindProvider: 0, guard.KindProviderImage: 0,
		guard.KindPool: 0, guard.KindPoolLabel: 0, guard.KindLimit: 0, guard.KindTenantLimit: 0,
	}
	for _, i := range g.items {
		counts[i.Kind]++
	}
	for kind, n := range counts {
		out <- prometheus.MustNewConstMetric(guardedDesc, prometheus.GaugeValue, float64(n), kind)
	}
}
