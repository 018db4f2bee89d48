package dispatch_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event/dispatch"
)

// behind is how far a daemon says that its sinks are behind.
func (d *daemon) behind(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(d.Service)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]float64{}
	for _, family := range families {
		for _, line := range family.GetMetric() {
			if family.GetName() == "poolkeeper_events_sink_behind_seconds" {
				list[line.GetLabel()[0].GetValue()] = line.GetGauge().GetValue()
			}
		}
	}
	return list
}

// Mistakes: a sink whose try hangs, which has not failed, and of which nothing tells; one that
// has all and is told as behind; what a daemon says of sinks that another one serves.
func TestSinksThatAreBehind(t *testing.T) {
	dir := t.TempDir()
	flag := filepath.Join(dir, "go")
	hangs := script(t, dir, `while [ ! -e `+flag+` ]; do sleep 0.05; done`)
	all := options(dispatch.Sink{Name: "hangs", Command: hangs}, file(dir, "well"))
	all.Sinks[0].Timeout = time.Hour
	var ahead atomic.Int64
	root := zktest.Root(t)
	change := func(d *dispatch.Deps) {
		d.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	one := start(t, root, "one", all, change)
	zktest.Eventually(t, func() bool { return len(one.behind(t)) == 2 }, "one serves both sinks")
	two := start(t, root, "two", all, change)
	one.tell(t, 3)
	ahead.Store(int64(30 * time.Minute))
	zktest.Eventually(t, func() bool {
		got := one.behind(t)
		return got["hangs"] > 1200 && got["well"] == 0
	}, "the sink that hangs is behind, and the other is not")
	places, err := dispatch.Places(t.Context(), one.store.Session())
	if err != nil || len(places) != 2 || places[0].Sink != "hangs" || places[0].Next.IsZero() {
		t.Errorf("the places of sinks: %+v, %v", places, err)
	}
	if got := two.behind(t); len(got) != 0 {
		t.Errorf("a daemon that does not dispatch tells %v", got)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return one.behind(t)["hangs"] == 0 }, "it has all")
	one.stop()
	if got := one.behind(t); len(got) != 0 {
		t.Errorf("a daemon that has stopped tells %v", got)
	}
	zktest.Eventually(t, func() bool { return len(two.behind(t)) == 2 }, "the other one tells")
}
