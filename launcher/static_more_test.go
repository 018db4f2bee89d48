package launcher_test

import (
	"fmt"
	"strings"
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

// open opens static providers as such, and others as this site's clouds.
func (s *site) open(p configs.Provider) (providers.Provider, error) {
	if p.Driver == configs.DriverStatic {
		return static.New(p), nil
	}
	return keepOpen{s.clouds[p.Name]}, nil
}

func (s *site) withStatic(d *launcher.Deps) { d.Open, d.Resync = s.open, 200*time.Millisecond }

// A machine that does not answer costs only the request that wanted it: others, of that
// launcher and of that pool too, do not wait until its timeout is over.
func TestDeadMachineHoldsUpNobody(t *testing.T) {
	t.Parallel()
	server, live := sshd.Start(t, 0), sshd.Start(t, 0)
	const metal = `
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - {name: 127.0.0.1, labels: iron, timeout: 10, connection-port: %d}
          - {name: 127.0.0.1, labels: brass, timeout: 10, connection-port: %d}
`
	s := newSite(t, strings.Replace(onePool, "labels: [", "labels: [{name: iron}, {name: brass}, ", 1)+fmt.Sprintf(metal[1:], server.Port, live.Port))
	s.image()
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(s.withStatic, named(host))
	}
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "the machines registered")
	server.Close()
	dead := s.submit(zuul.Wish{Labels: []string{"iron"}})
	zktest.Eventually(t, func() bool { return s.free() == 1 }, "the machine asked")
	for _, w := range []zuul.Wish{wish("small"), {Labels: []string{"brass"}}} {
		if out := s.wait(s.submit(w)); out.State != "fulfilled" {
			t.Fatalf("%+v", out)
		}
	}
	if r, err := s.store.Request(t.Context(), dead); err != nil || strings.Contains(r.Reason, "does not answer") {
		t.Errorf("the others were served only when the dead machine was given up: %+v (%v)", r, err)
	}
	zktest.Eventually(t, func() bool {
		r, err := s.store.Request(t.Context(), dead)
		return err == nil && r.State == zkmodel.RequestRequested && strings.Contains(r.Reason, "does not answer")
	}, "the request waits again and says why")
}

// Machines that do not answer are contacted side by side with those that do.
func TestDeadMachinesHoldUpNoRegistration(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, 0)
	s := newSite(t, twoSlots)
	pool := &s.config.Providers[0].Pools[0]
	live := pool.Nodes[0]
	live.HostKeyChecking, live.ConnectionPort, live.Timeout, live.HostKeys = true, server.Port, 4*time.Second, nil
	pool.Nodes = nil
	for i := range 10 {
		dead := live
		dead.ConnectionPort = 1
		dead.Username = fmt.Sprint("op", i)
		pool.Nodes = append(pool.Nodes, dead)
	}
	pool.Nodes = append(pool.Nodes, live)
	start := time.Now()
	s.launch(s.withStatic)
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "both slots of the live one registered")
	if took := time.Since(start); took > 12*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What the configuration says of machines becomes true of those that are free at
// once, and of those in use when they have been used.
func TestStaticConfigurationChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoSlots)
	first := s.launch(s.withStatic)
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "two slots registered")
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"iron"}}))
	used, err := s.zuul.Accept(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Use(used...); err != nil {
		t.Fatal(err)
	}
	first.stop()
	pool := &s.config.Providers[0].Pools[0]
	freeOnly := func(what string, is func(n *zkmodel.Node) bool) {
		t.Helper()
		l := s.launch(s.withStatic)
		zktest.Eventually(t, func() bool {
			fits, others := 0, 0
			for _, n := range s.nodes() {
				switch {
				case n.ID == used[0].ID:
				case n.State == zkmodel.NodeReady && is(n):
					fits++
				default:
					others++
				}
			}
			return fits == 1 && others == 0
		}, "%s", what)
		l.stop()
		if n := s.node(used[0].ID); n.State != zkmodel.NodeInUse || n.Username != "op" {
			t.Errorf("%s: the node in use is %s, of %s", what, n.State, n.Username)
		}
	}
	pool.NodeAttributes = map[string]any{"rack": 7}
	freeOnly("other attributes", func(n *zkmodel.Node) bool { return n.Attributes.Text() == `{"rack": 7}` })
	pool.Nodes[0].ShellType = "sh"
	freeOnly("another shell", func(n *zkmodel.Node) bool { return n.ShellType == "sh" })
	pool.Nodes[0].Labels = append(pool.Nodes[0].Labels, "heavy")
	freeOnly("another label", func(n *zkmodel.Node) bool { return len(n.Type) == 2 })
	pool.Nodes[0].MaxParallelJobs, pool.Nodes[0].Username = 1, "root"
	freeOnly("another account", func(n *zkmodel.Node) bool { return n.Username == "root" })

	pool.Nodes = nil
	s.launch(s.withStatic)
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 1 }, "only the node in use left")
	if err := s.zuul.Return(used...); err != nil {
		t.Fatal(err)
	}
	s.eventuallyEmpty()
}
