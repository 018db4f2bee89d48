package launcher_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/launcher/checks"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// A launcher that is paused takes and declines no request, not even with a node of the stock
// that is ready; the other one of the pool does, and need not leave it any. With both paused
// requests wait, and say why; what was taken before is in hand until it is over. Catches: a
// daemon that drains for ever as it goes on taking work, or stops with a request in its hands.
func TestPausedLauncherTakesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	services := map[string]*launcher.Service{}
	for _, name := range []string{"nl01", "nl02"} {
		services[name] = s.service(named(name))
	}
	zktest.Eventually(t, func() bool { return len(s.pools()) == 4 }, "four pools registered")
	idle := func(name string) {
		t.Helper()
		zktest.Eventually(t, func() bool { return s.inHand(services[name]) == "" }, "nothing is in hand of %s", name)
	}
	services["nl01"].Pause("paused by anna")
	idle("nl01")
	for range 8 {
		for _, label := range []string{"small", "tiny"} {
			err := s.zuul.Run(t.Context(), wish(label), func(nodes []*zuul.Node) error {
				if by := nodes[0].Text("launcher"); !strings.HasPrefix(by, "nl02") {
					t.Errorf("a node of %s was launched by %s", label, by)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	zktest.Eventually(t, func() bool {
		list, err := s.store.Daemons(t.Context())
		shown := 0
		for _, d := range list {
			if d.Hostname == "nl01" && d.State == zkmodel.ComponentPaused && d.Reason == "paused by anna" || d.Hostname == "nl02" && d.State == zkmodel.ComponentRunning {
				shown++
			}
		}
		return err == nil && shown == 2
	}, "the record of one says that it is paused")

	// The last one has a request in hand when it is paused, and ends it.
	booting, boot := make(chan struct{}, 10), make(chan struct{})
	for _, cloud := range s.clouds {
		cloud.SetHook(func(ctx context.Context, c fake.Call) error {
			if c.Op == fake.OpWait && !c.Done {
				booting <- struct{}{}
				select {
				case <-boot:
				case <-ctx.Done():
				}
			}
			return nil
		})
	}
	inHand := s.submit(wish("large"))
	zktest.Await(t, booting, "a machine boots")
	services["nl02"].Pause("paused by bob")
	zktest.Eventually(t, func() bool { return s.inHand(services["nl02"]) == "requests: 1" }, "the request is in hand")
	trial := s.onTrial("debian", "cloud")
	waits := s.submit(wish("tiny"))
	zktest.Eventually(t, func() bool {
		for _, r := range services["nl02"].Requests() {
			if r.ID == waits {
				return strings.Contains(r.Reason, "paused by bob")
			}
		}
		return false
	}, "the request says why it waits")
	if tried := s.tried("cloud"); len(tried) > 0 {
		t.Errorf("node %s tries an upload, and all are paused", tried[0].ID)
	}
	close(boot)
	services["nl01"].Pause("")
	s.ends(trial, zkmodel.ValidationPassed, "")
	if out := s.wait(waits); !strings.HasPrefix(s.node(out.Nodes[0]).Launcher, "nl01") {
		t.Errorf("launched by %s, which is paused", s.node(out.Nodes[0]).Launcher)
	}
	if out := s.wait(inHand); !strings.HasPrefix(s.node(out.Nodes[0]).Launcher, "nl02") {
		t.Errorf("what was in hand was launched by %s", s.node(out.Nodes[0]).Launcher)
	}
	idle("nl02")
	s.trialInHand(services["nl01"])
}

// trialInHand pauses a launcher, the only one that works, while its node is tried: that is in
// hand until it is deleted, and nothing else is begun.
func (s *site) trialInHand(works *launcher.Service) {
	s.t.Helper()
	booting, open := s.gate()
	trial := s.onTrial("debian", "cloud")
	zktest.Await(s.t, booting, "a machine boots")
	works.Pause("paused by carl")
	zktest.Eventually(s.t, func() bool { return s.inHand(works) == "trials of uploads: 1" }, "the trial is in hand")
	open()
	zktest.Eventually(s.t, func() bool { return s.inHand(works) == "" }, "nothing is in hand")
	if tried := s.tried("cloud"); len(tried) > 0 {
		s.t.Errorf("node %s is left when nothing is in hand", tried[0].ID)
	}
	s.ends(trial, zkmodel.ValidationPassed, "")
}

// service starts a launcher as the program runs it.
func (s *site) service(change func(*launcher.Deps)) *launcher.Service {
	s.t.Helper()
	deps := launcher.Deps{
		Client: s.dial(4 * time.Second), Logger: s.logger(),
		Open: func(p configs.Provider) (providers.Provider, error) { return keepOpen{s.clouds[p.Name]}, nil },
	}
	deps.Check = func(_ context.Context, _ checks.Machine, _ ssh.Signer, _ []zkmodel.Check, began func()) error {
		began()
		return nil
	}
	change(&deps)
	l, err := launcher.NewService(s.config, deps)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := l.Run(ctx); err != nil {
			s.t.Errorf("launcher ended with %v", err)
		}
	})
	s.t.Cleanup(func() { cancel(); done.Wait() })
	return l
}

// inHand is what a paused launcher works at; "?" while that is not known.
func (s *site) inHand(l *launcher.Service) string {
	if what, known := l.InHand(); known {
		return what
	}
	return "?"
}
