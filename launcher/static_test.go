package launcher_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/static"
	"poolkeeper/test/sshd"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// twoSlots is a machine that does two jobs at a time.
const twoSlots = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: iron}]
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - {name: 127.0.0.1, labels: iron, username: op, connection-port: 2222, max-parallel-jobs: 2, host-key-checking: false, host-key: [ssh-rsa KEY]}
`

// withSlots runs launchers on a configuration with a static provider.
func withSlots(t *testing.T, count int, change func(*configs.StaticNode)) *site {
	t.Helper()
	s := newSite(t, twoSlots)
	if change != nil {
		change(&s.config.Providers[0].Pools[0].Nodes[0])
	}
	for range count {
		s.launch(func(d *launcher.Deps) {
			d.Resync = 200 * time.Millisecond
			d.Open = func(p configs.Provider) (providers.Provider, error) { return static.New(p), nil }
		})
	}
	return s
}

// free counts the ready nodes that are nobody's.
func (s *site) free() int {
	count := 0
	for _, n := range s.nodes() {
		if n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked {
			count++
		}
	}
	return count
}

// Machines that exist already are given away slot by slot, each to one at a
// time, and are there again after use.
func TestStaticNodes(t *testing.T) {
	t.Parallel()
	s := withSlots(t, 2, nil)
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "two slots registered")
	n := s.nodes()[0]
	if n.Hostname != "127.0.0.1" || n.PublicIPv4 != "127.0.0.1" || n.PublicIPv6 != "" || n.Launcher != "static driver" || n.Username != "op" || !slices.Equal(n.HostKeys, []string{"ssh-rsa KEY"}) {
		t.Errorf("registered as %+v", n)
	}
	var mu sync.Mutex
	using, most := 0, 0
	var jobs sync.WaitGroup
	for range 8 {
		jobs.Go(func() {
			err := s.zuul.Run(t.Context(), zuul.Wish{Labels: []string{"iron"}}, func([]*zuul.Node) error {
				mu.Lock()
				defer mu.Unlock()
				using++
				most = max(most, using)
				using--
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	if most > 2 {
		t.Errorf("%d jobs on two slots", most)
	}
	zktest.Eventually(t, func() bool { return s.free() == 2 && len(s.nodes()) == 2 }, "two slots registered again")
}

// A machine that does not answer, or shows a wrong key, is not registered; one
// that stops answering is not given away.
func TestStaticNodeMustLive(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, 0)
	s := withSlots(t, 1, func(n *configs.StaticNode) {
		n.HostKeyChecking, n.ConnectionPort, n.Timeout = true, server.Port, 2*time.Second
		n.HostKeys, n.MaxParallelJobs = []string{server.Key}, 1
	})
	zktest.Eventually(t, func() bool { return s.free() == 1 }, "the machine registered")
	first := s.nodes()[0].ID
	server.Close()
	id := s.submit(zuul.Wish{Labels: []string{"iron"}})
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 0 }, "the dead machine %s gone", first)
	if r, err := s.store.Request(t.Context(), id); err != nil || r.State != zkmodel.RequestRequested {
		t.Errorf("request is %+v (%v), want it to wait", r, err)
	}
}
