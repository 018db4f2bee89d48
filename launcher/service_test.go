package launcher_test

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// registered are the records of launchers among the components.
func (s *site) registered() []string {
	s.t.Helper()
	names, err := s.store.Session().Children(s.t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindLauncher)
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// A new configuration counts at once, and what is being launched goes on. Mistake: the launcher is not among the daemons meanwhile.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	l, err := launcher.NewService(s.config, launcher.Deps{
		Client: s.client, Hostname: "host", Logger: s.logger(), Registerer: prometheus.NewRegistry(),
		Open: func(p configs.Provider) (providers.Provider, error) { return keepOpen{s.clouds[p.Name]}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Ready() == nil {
		t.Error("ready before it runs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	zktest.Eventually(t, func() bool { return l.Ready() == nil && l.Check(ctx) == nil }, "ready")
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"extra"}})); out.State != "failed" {
		t.Fatalf("%+v", out)
	}
	booting := s.stall()
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	zktest.Await(t, booting, "a machine boots")
	launched := s.nodesAt("cloud")[0].ID
	for _, cloud := range s.clouds {
		cloud.SetHook(nil)
	}

	registered := s.registered()
	next := *s.config
	next.Providers = append([]configs.Provider{}, next.Providers...)
	pools := append([]configs.Pool{}, next.Providers[0].Pools...)
	extra := pools[0].Labels[0]
	extra.Name = "extra"
	pools[0].Labels = append([]configs.PoolLabel{extra}, pools[0].Labels...)
	next.Providers[0].Pools = pools
	if err := l.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if out := s.wait(id); out.State != "fulfilled" || out.Nodes[0] != launched {
		t.Errorf("%+v, want the node that was being launched", out)
	}
	if now := s.registered(); len(now) == 0 || !slices.Equal(now, registered) {
		t.Errorf("launchers are registered as %q, and were as %q", now, registered)
	}
	// The label has to be offered by the new pool first: its id is another.
	zktest.Eventually(t, func() bool { return l.Ready() == nil }, "ready again")
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
	if got := s.machines("cloud"); got != 2 {
		t.Errorf("%d machines, want 2", got)
	}
	undisturbed()
}
