package launcher_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/providers/static"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// agingClouds deletes idle nodes and held ones soon.
const agingClouds = `
zookeeper-servers: [{host: 127.0.0.1}]
max-hold-age: 1
labels:
  - {name: small, max-ready-age: 1}
  - {name: large}
diskimages: [{name: debian, username: tester}]
providers:
  - name: cloud
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools:
      - name: main
        max-servers: 5
        labels:
          - {name: small, diskimage: debian, min-ram: 1024}
  - name: other
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools:
      - name: main
        labels: [{name: large, diskimage: debian, min-ram: 1024}]
`

// What is left out of the configuration is frozen: its idle and held nodes stay,
// whatever ages and limits say, and so do their machines. What a user has ordered is
// done, and the rest serves.
func TestWhatIsLeftOutIsFrozen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"nothing":            {"", ""},
		"label":              {"max-ready-age: 1}", "min-ready: [1], max-ready-age: 1}"},
		"label's name":       {"name: small, max-ready-age: 1}", "nam: small, max-ready-age: 1}"},
		"pool":               {"max-servers: 5", "max-servers: none, max-cores: 0"},
		"pool, disabled":     {"max-servers: 5", "max-servers: 0, priority: x"},
		"pool's name":        {"- name: main\n        max-servers: 5", "- nam: main\n        max-servers: 0"},
		"pools":              {"pools:\n      - name: main\n        max", "pool:\n      - name: main\n        max"},
		"pool label":         {"{name: small, diskimage: debian, min-ram: 1024}", "{name: small, min-ram: 1024}"},
		"pool label's name":  {"{name: small, diskimage: debian, min-ram: 1024}", "{nam: small, diskimage: debian, min-ram: 1024}"},
		"provider":           {"cloud: fake\n", "cloud: fake\n    boot-timeout: [1]\n"},
		"provider's name":    {"- name: cloud", "- nam: cloud"},
		"provider's picture": {"diskimages: [{name: debian}]\n    pools", "diskimages: [{nam: debian}]\n    pools"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer(", max-cores", "\n        max-cores", ", priority", "\n        priority").Replace(change[1])
			s := newSite(t, agingClouds) // whose clouds know it as it was
			path := filepath.Join(t.TempDir(), "nodepool.yaml")
			err := os.WriteFile(path, []byte(strings.Replace(agingClouds, change[0], text, 1)), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if s.config, err = configs.Load(path, configs.Options{}); err != nil {
				t.Fatal(err)
			}
			s.image()
			old := zkmodel.EpochOf(time.Now().Add(-time.Hour))
			idle := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.StateTime = old })
			held := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.StateTime = old })
			used := s.orphan(zkmodel.NodeUsed, nil)
			for _, id := range []string{idle, held, used} {
				s.machine(id)
			}
			_, readable := s.config.Provider("cloud")
			resyncs := s.countResyncs("other")
			s.launch(func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond })
			if out := s.wait(s.submit(wish("large"))); out.State != "fulfilled" {
				t.Errorf("the rest does not serve: %v", out)
			}
			zktest.Eventually(t, func() bool { return resyncs() >= 4 }, "three resyncs")
			there := map[string]zkmodel.NodeState{}
			for _, n := range s.nodes() {
				there[n.ID] = n.State
			}
			if name == "nothing" || name == "provider's picture" { // images are the builder's
				if there[idle] != "" || there[held] != "" {
					t.Errorf("where nothing is left out, old nodes stay: %v", there)
				}
				return
			}
			if there[idle] != zkmodel.NodeReady || there[held] != zkmodel.NodeHold {
				t.Errorf("idle node %q, held node %q", there[idle], there[held])
			}
			left := 3
			if readable {
				left = 2
			}
			if (there[used] == "") != readable || s.machines("cloud") != left {
				t.Errorf("used node %q, %d machines, want %d", there[used], s.machines("cloud"), left)
			}
		})
	}
}

// countResyncs counts how often a cloud is asked for its machines.
func (s *site) countResyncs(cloud string) func() int32 {
	var looks atomic.Int32
	s.clouds[cloud].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpList && !c.Done {
			looks.Add(1)
		}
		return nil
	})
	return looks.Load
}

// Requests for a label that is left out wait until that is mended; they fail only
// where no pool may have it.
func TestRequestsForWhatIsLeftOutWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(agingClouds, "{name: small, diskimage: debian, min-ram: 1024}", "{name: small, min-ram: 1024}", 1))
	s.image()
	l := s.launch()
	waits, fails := s.submit(wish("small")), s.submit(wish("unheard-of"))
	if out := s.wait(fails); out.State != "failed" {
		t.Errorf("a label that no pool has: %v", out)
	}
	zktest.Eventually(t, func() bool {
		for _, r := range l.Requests() {
			if r.ID == waits && strings.Contains(r.Reason, "left out of the configuration") {
				return true
			}
		}
		return false
	}, "the request says why it waits")
}

// Requests for the labels of a provider of which only the names are known wait, too.
func TestRequestsForALabelOfALostProviderWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, agingClouds)
	for _, pool := range []string{"main", "spare"} {
		s.config.Freeze(configs.Frozen{Kind: "pool label", Provider: "lost", Pool: pool, Name: "huge", Why: "the provider is gone"})
	}
	s.image()
	l := s.launch()
	waits, fails := s.submit(wish("huge")), s.submit(wish("unheard-of"))
	if out := s.wait(fails); out.State != "failed" {
		t.Errorf("a label that no pool has: %v", out)
	}
	if out := s.wait(s.submit(wish("small", "small"))); out.State != "fulfilled" {
		t.Errorf("the rest does not serve: %v", out)
	}
	zktest.Eventually(t, func() bool {
		for _, r := range l.Requests() {
			if r.ID == waits && r.State == zkmodel.RequestRequested && strings.Contains(r.Reason, "the provider is gone") {
				return true
			}
		}
		return false
	}, "the request says why it waits")
}

// Slots of a static pool that has a machine which cannot be read stay registered.
func TestStaticNodesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(twoSlots, "- {name: 127.0.0.1,", "- {labels: iron}\n          - {name: 127.0.0.1,", 1))
	other := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) {
		n.Provider, n.Launcher, n.Type, n.Hostname, n.Username = "lab", "static driver", zkmodel.Strings{"iron"}, "10.0.0.1", "op"
	})
	s.launch(func(d *launcher.Deps) {
		d.Resync = 100 * time.Millisecond
		d.Open = func(p configs.Provider) (providers.Provider, error) { return static.New(p), nil }
	})
	zktest.Eventually(t, func() bool { return s.free() == 3 }, "the machine that can be read is registered, twice")
	if n := s.node(other); n.State != zkmodel.NodeReady {
		t.Errorf("the machine that cannot be read is %s", n.State)
	}
}
