package launcher_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
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
	t.Parallel()
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

// Nodes of a provider that cannot be opened are left as they are, without a try and
// the longer and longer pauses that follow one: they go when it opens.
func TestNodesOfAProviderThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoClouds)
	s.image()
	var mended atomic.Bool
	id := s.orphan(zkmodel.NodeUsed, func(n *zkmodel.Node) { n.Provider = "broken" })
	s.launch(func(d *launcher.Deps) {
		open := d.Open
		d.Open = func(p configs.Provider) (providers.Provider, error) {
			if p.Name == "broken" && !mended.Load() {
				return nil, errors.New("no clouds.yaml")
			}
			return open(p)
		}
	})
	if err := s.zuul.Run(t.Context(), wish("small"), nil); err != nil { // it has looked at all
		t.Fatal(err)
	}
	if n := s.node(id); n.State != zkmodel.NodeUsed {
		t.Errorf("the node is %s already", n.State)
	}
	mended.Store(true)
	s.eventuallyEmpty()
}

// only is a launcher's configuration that has but some of the providers.
func (s *site) only(names ...string) *configs.Config {
	cfg := *s.config
	cfg.Providers = slices.DeleteFunc(slices.Clone(cfg.Providers), func(p configs.Provider) bool {
		return !slices.Contains(names, p.Name)
	})
	return &cfg
}

// launchOnly starts a launcher that has but some of the providers.
func (s *site) launchOnly(names []string, change ...func(*launcher.Deps)) *running {
	s.t.Helper()
	whole := s.config
	defer func() { s.config = whole }()
	s.config = s.only(names...)
	return s.launch(change...)
}

// A provider that is broken, or is told to take nothing, holds up no launcher of
// other providers: neither by its better priority nor because it was asked for.
func TestOneBadProviderHoldsUpNoOtherLauncher(t *testing.T) {
	t.Parallel()
	t.Run("broken", func(t *testing.T) {
		s := newSite(t, twoClouds)
		s.image()
		s.launchOnly([]string{"broken"}, func(d *launcher.Deps) {
			d.Open = func(configs.Provider) (providers.Provider, error) { return nil, errors.New("no clouds.yaml") }
		})
		zktest.Eventually(t, func() bool { return len(s.pools()) == 1 }, "the broken one registered")
		s.launchOnly([]string{"cloud"})
		for _, w := range []zuul.Wish{wish("small"), {Labels: []string{"small"}, Provider: "broken", Fresh: true}} {
			if err := s.zuul.Run(t.Context(), w, nil); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("idle", func(t *testing.T) {
		s := newSite(t, twoClouds)
		s.image()
		s.config.Providers[0].MaxConcurrency = 0
		s.launchOnly([]string{"broken"})
		zktest.Eventually(t, func() bool { return len(s.pools()) == 1 }, "the idle one registered")
		s.launchOnly([]string{"cloud"})
		if err := s.zuul.Run(t.Context(), wish("small"), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestStopGivesRequestsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	booting := s.stall()
	l := s.launch()
	id := s.submit(zuul.Wish{Labels: []string{"small", "large"}})
	zktest.Await(t, booting, "a machine boots")
	zktest.Await(t, booting, "a machine boots")
	l.stop() // fails the test unless it ends cleanly
	s.clouds["cloud"].SetHook(nil)
	s.launch()
	if out := s.wait(id); out.State != "fulfilled" || len(out.DeclinedBy) != 0 {
		t.Errorf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 2 && s.machines("cloud") == 2 }, "two nodes, no more")
}

func TestDecisionsHaveReasons(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoClouds)
	s.image()
	l := s.launch(func(d *launcher.Deps) {
		d.Open = func(configs.Provider) (providers.Provider, error) { return nil, errors.New("no clouds.yaml") }
	})
	s.submit(zuul.Wish{Labels: []string{"small"}})
	want := "provider broken cannot be opened: no clouds.yaml"
	zktest.Eventually(t, func() bool {
		d := l.Decisions()
		return len(d) == 1 && d[0].Verdict() == "wait" && d[0].Why() == want
	}, "a decision that says %q", want)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
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
