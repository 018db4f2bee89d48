package launcher_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// seeing is a cloud that sees machines fail while they boot.
type seeing struct {
	keepOpen
	port  int                                                   // of what accepts connections and says nothing
	watch func(ctx context.Context, id string, times int) error // how often: of this machine

	mu    sync.Mutex
	times map[string]int
	shown bool // from now on machines need not be scanned
}

// seeing makes cloud one that sees.
func (s *site) seeing(watch func(ctx context.Context, id string, times int) error) *seeing {
	s.t.Helper()
	l, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Close() })
	return &seeing{
		keepOpen: keepOpen{s.clouds["cloud"]}, port: l.Addr().(*net.TCPAddr).Port, watch: watch, times: map[string]int{},
	}
}

func (c *seeing) open(d *launcher.Deps) {
	d.Open = func(configs.Provider) (providers.Provider, error) { return c, nil }
}

// WaitNode gives a machine that shows no key until it was started again.
func (c *seeing) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	i, err := c.keepOpen.WaitNode(ctx, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	i.InterfaceIP, i.Port, i.SkipHostScan, i.HostKeys = "127.0.0.1", c.port, c.shown || c.times[id] > 0, nil
	i.Runs = "accelerator warp"
	return i, err
}

// WatchNode implements providers.Watcher.
func (c *seeing) WatchNode(ctx context.Context, id string) error {
	c.mu.Lock()
	c.times[id]++
	times := c.times[id]
	c.mu.Unlock()
	return c.watch(ctx, id, times)
}

var _ providers.Watcher = (*seeing)(nil)

// What a provider sees ends the launch at once, long before boot-timeout.
func TestLaunchEndsWhenTheMachineIsSeenToFail(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	c := s.seeing(func(context.Context, string, int) error {
		return fmt.Errorf("%w: KVM internal error", providers.ErrNodeFailed)
	})
	s.launch(c.open)
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small", "large"}}))
	if out.State != "failed" || !strings.Contains(out.Reason, "KVM internal error") {
		t.Errorf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 0 }, "no machine left")
}

// A machine that its provider starts again is waited for anew, at its new address,
// in the same launch.
func TestLaunchGoesOnWhenTheMachineIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	var mu sync.Mutex
	var states []zkmodel.NodeState // when the last watch ended
	c := s.seeing(func(ctx context.Context, id string, times int) error {
		if times == 1 {
			return fmt.Errorf("%w: KVM internal error", providers.ErrRestarted)
		}
		<-ctx.Done()
		nodes, err := s.store.Nodes(context.WithoutCancel(ctx))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, n := range nodes {
			states = append(states, n.State)
		}
		return nil
	})
	s.launch(c.open)
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small", "large"}}))
	if out.State != "fulfilled" || s.machines("cloud") != 2 {
		t.Fatalf("%+v, %d machines", out, s.machines("cloud"))
	}
	for _, id := range out.Nodes {
		if n := s.node(id); n.Attempt > 1 || !strings.Contains(n.Reason, "KVM internal error") {
			t.Errorf("node %s: attempt %d, reason %q", id, n.Attempt, n.Reason)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(states) < 2 {
		t.Errorf("watched %d times to the end", len(states))
	}
	if states[0] != zkmodel.NodeBuilding {
		t.Errorf("the first watch ended when its node was %s", states[0])
	}
}

// How a machine runs is told with every launch that fails.
func TestReasonTellsHowTheMachineRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(onePool, "    cloud: fake\n", "    cloud: fake\n    boot-timeout: 1\n    launch-retries: 1\n", 1))
	s.image()
	c := s.seeing(func(ctx context.Context, _ string, _ int) error {
		<-ctx.Done()
		return nil
	})
	s.launch(func(d *launcher.Deps) {
		d.Open = func(configs.Provider) (providers.Provider, error) { return deaf{c}, nil }
	})
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "failed" || !strings.Contains(out.Reason, "boot-timeout of 1s is over") || !strings.Contains(out.Reason, "(accelerator warp)") {
		t.Errorf("%+v", out)
	}
}

// deaf is a cloud whose machines never show a key.
type deaf struct{ *seeing }

func (c deaf) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	i, err := c.seeing.WaitNode(ctx, id)
	i.SkipHostScan = false
	return i, err
}

// A launcher that finds nodes is led by their records: one that is being built is
// watched on, one that is ready is its user's.
func TestOnlyWhatIsBuiltIsWatched(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	watched := make(chan string, 10)
	c := s.seeing(func(ctx context.Context, id string, _ int) error {
		watched <- id
		<-ctx.Done()
		return nil
	})
	first := s.launch(c.open)
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	machine := <-watched
	first.client.Close() // while the machine boots
	second := s.launch(c.open)
	if again := <-watched; again != machine {
		t.Errorf("machine %s is watched, and %s was", again, machine)
	}
	if out := s.wait(id); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	second.stop()
	c.mu.Lock()
	before := c.times[machine]
	c.shown = true
	c.mu.Unlock()
	s.launch(c.open)
	if out := s.wait(s.submit(wish("large"))); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times[machine] != before {
		t.Error("the machine of a node that is ready is watched")
	}
}
