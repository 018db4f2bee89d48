package launcher_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// twoClouds has the same label in two providers, the first of them preferred.
const twoClouds = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}]
diskimages: [{name: debian, elements: [debian]}]
providers:
  - {name: broken, driver: fake, cloud: fake, priority: 10, diskimages: [{name: debian}],
     pools: [{name: main, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]}
  - {name: cloud, driver: fake, cloud: fake, diskimages: [{name: debian}],
     pools: [{name: main, max-servers: 1, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]}
`

// A provider that cannot be opened stops no other, and is tried again.
func TestProviderThatDoesNotOpen(t *testing.T) {
	s := newSite(t, twoClouds)
	s.image()
	var mended atomic.Bool
	s.launch(func(d *launcher.Deps) {
		open := d.Open
		d.Open = func(p configs.Provider) (providers.Provider, error) {
			if p.Name == "broken" && !mended.Load() {
				return nil, errors.New("no clouds.yaml")
			}
			return open(p)
		}
	})
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if got := s.node(out.Nodes[0]).Provider; got != "cloud" {
		t.Errorf("served by %s", got)
	}
	// The other cloud is full now: the next one waits until the broken one opens.
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	mended.Store(true)
	out = s.wait(id)
	if got := s.node(out.Nodes[0]).Provider; got != "broken" {
		t.Errorf("served by %s", got)
	}
}

func TestStopGivesRequestsBack(t *testing.T) {
	s := newSite(t, onePool)
	s.image()
	booting := s.stall()
	l := s.launch()
	id := s.submit(zuul.Wish{Labels: []string{"small", "large"}})
	<-booting
	<-booting
	l.stop() // fails the test unless it ends cleanly
	s.clouds["cloud"].SetHook(nil)
	s.launch()
	if out := s.wait(id); out.State != "fulfilled" || len(out.DeclinedBy) != 0 {
		t.Errorf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 2 && s.machines("cloud") == 2 }, "two nodes, no more")
}

func TestDecisionsHaveReasons(t *testing.T) {
	s := newSite(t, twoClouds)
	s.image()
	l := s.launch(func(d *launcher.Deps) {
		d.Open = func(configs.Provider) (providers.Provider, error) { return nil, errors.New("no clouds.yaml") }
	})
	s.submit(zuul.Wish{Labels: []string{"small"}})
	want := "provider broken cannot be opened: no clouds.yaml"
	zktest.Eventually(t, func() bool {
		d := l.Decisions()
		return len(d) == 1 && d[0].Verdict == launcher.Wait && d[0].Reason == want
	}, "a decision that says %q", want)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	s := newSite(t, onePool)
	deps := launcher.Deps{
		Client: s.client, Registerer: prometheus.NewRegistry(),
		Open: func(configs.Provider) (providers.Provider, error) { return nil, fmt.Errorf("unused") },
	}
	if _, err := launcher.New(nil, deps); err == nil {
		t.Error("made without a configuration")
	}
	if _, err := launcher.New(s.config, launcher.Deps{Client: s.client}); err == nil {
		t.Error("made without providers")
	}
	if _, err := launcher.New(s.config, deps); err != nil {
		t.Fatal(err)
	}
	if _, err := launcher.New(s.config, deps); err != nil {
		t.Errorf("one that goes on with the metrics of the one before: %v", err)
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "poolkeeper_launcher_launches_total", Help: "x"}))
	deps.Registerer = taken
	if _, err := launcher.New(s.config, deps); err == nil {
		t.Error("made although the metrics' names are taken")
	}
}
