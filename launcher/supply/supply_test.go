package supply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
)

var errDown = errors.New("connection refused")

// cloud is a provider that is open or not, and answers or not.
type cloud struct {
	providers.Provider // what is not asked here

	mu           sync.Mutex
	open, answer error
	limits       providers.Resources
	asked        int // for limits
	denied       bool
	site         string
	mended       bool // the broken label works
}

func (c *cloud) OfInstallation(site string) { c.set(func(c *cloud) { c.site = site }) }

func (c *cloud) set(change func(c *cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cloud) opener(configs.Provider) (providers.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil {
		return nil, c.open
	}
	return c, nil
}

func (c *cloud) NodeResources(_ context.Context, _, label string) (providers.Resources, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if label == "broken" && !c.mended {
		return nil, providers.ErrInvalid
	}
	return providers.Resources{"instances": 1}, c.answer
}

func (c *cloud) Limits(context.Context, providers.Ours) (providers.Resources, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.denied {
		return nil, providers.ErrNoLimits
	}
	return c.limits, c.answer
}

func (c *cloud) Close() error { return nil }

// run starts a Provider of a cloud, in a bubble of time of its own.
func run(t *testing.T, c *cloud) *supply.Provider {
	t.Helper()
	return open(t, c.opener)
}

// open starts a Provider of what an opener opens.
func open(t *testing.T, opener func(configs.Provider) (providers.Provider, error)) *supply.Provider {
	t.Helper()
	return openSection(t, configs.Provider{Name: "north", Pools: []configs.Pool{
		{Name: "main", Labels: []configs.PoolLabel{{Name: "small"}, {Name: "broken"}}},
		{Name: "spare", Nodes: []configs.StaticNode{{Labels: []string{"small"}}}},
	}}, opener)
}

// openSection starts a Provider of a section of the configuration.
func openSection(t *testing.T, section configs.Provider, opener func(configs.Provider) (providers.Provider, error)) *supply.Provider {
	t.Helper()
	p := supply.New(section, registry.New(opener, registry.Events{}), hclog.NewNullLogger(), time.Now, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.Run(ctx) })
	t.Cleanup(done.Wait)
	t.Cleanup(cancel)
	synctest.Wait()
	return p
}

// pass lets time go by in the bubble.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := clock.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// Catches a provider that is used before it is open or has answered, whose failure is not
// told, or that is never tried again.
func TestUnavailableUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{open: errDown, limits: providers.Resources{"instances": 5}}
		p := run(t, c)
		if v := p.View(); !v.Broken || !strings.Contains(v.Unavailable, "cannot be opened: connection refused") {
			t.Errorf("while it cannot be opened: %+v", v)
		}
		if _, err := p.Use(); !errors.Is(err, supply.ErrNotOpen) {
			t.Errorf("use: %v", err)
		}
		c.set(func(c *cloud) { c.open, c.answer = nil, errDown })
		pass(t, 2*time.Minute)
		if v := p.View(); !v.Broken || !strings.Contains(v.Unavailable, "does not tell") {
			t.Errorf("while it does not answer: %+v", v)
		}
		c.set(func(c *cloud) { c.answer = nil })
		pass(t, 2*time.Minute)
		v := p.View()
		if v.Unavailable != "" || v.Trouble != "" || v.Limits["instances"] != 5 {
			t.Errorf("when it answers: %+v", v)
		}
		if v.Needs["main"]["small"].Needs["instances"] != 1 || v.Needs["spare"]["small"].Needs["instances"] != 1 {
			t.Errorf("what labels take: %+v", v.Needs)
		}
		if v.Needs["main"]["broken"].Fault == "" || v.Needs["main"]["small"].Fault != "" {
			t.Errorf("one label's mistake is told of others, or not at all: %+v", v.Needs)
		}
	})
}

// A flavor that the cloud gets later must not wait for the next question about limits, minutes later.
func TestAMistakeIsLookedAtAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		p := run(t, c)
		pass(t, time.Minute)
		if p.View().Needs["main"]["broken"].Fault == "" {
			t.Fatal("the broken label has no fault")
		}
		c.set(func(c *cloud) { c.mended = true })
		pass(t, 20*time.Second)
		if fault := p.View().Needs["main"]["broken"].Fault; fault != "" {
			t.Errorf("20s after the cloud got what the label names: %s", fault)
		}
	})
}

// A provider that is opened late, or again, has to know whose it is before it is used.
func TestIsToldWhoseItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{open: errDown}
		p := run(t, c)
		p.OfInstallation("here")
		c.set(func(c *cloud) { c.open = nil })
		pass(t, 2*time.Minute)
		if _, err := p.Use(); err != nil || c.site != "here" {
			t.Errorf("opened late it works for %q, %v", c.site, err)
		}
		p.OfInstallation("there")
		if c.site != "there" {
			t.Errorf("told again it works for %q", c.site)
		}
	})
}

// Catches a provider that goes on launching while it says that it cannot be used, or
// that waits for the next time it is asked, minutes later, when it is well again.
func TestTroubleHoldsUntilLimitsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{limits: providers.Resources{"instances": 5}}
		p := run(t, c)
		c.set(func(c *cloud) { c.answer = errDown })
		p.Told(errDown)
		if v := p.View(); !v.Held || v.Broken || !strings.Contains(v.Unavailable, "cannot be used: connection refused") {
			t.Errorf("in trouble: %+v", v)
		}
		pass(t, 30*time.Second)
		c.set(func(c *cloud) { c.answer = nil })
		pass(t, time.Minute)
		if v := p.View(); v.Held || v.Unavailable != "" || v.Trouble == "" {
			t.Errorf("it answers, and has not taken its trouble back: %+v", v)
		}
		p.Told(nil)
		if v := p.View(); v.Trouble != "" {
			t.Errorf("the trouble is over: %+v", v)
		}
	})
}

// Catches a raised limit that waits for the pause of an old refusal, and a lowered or
// equal one that ends it.
func TestGrownLimitEndsTheBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		now providers.Resources
		due bool
	}{
		"grown":     {providers.Resources{"instances": 6}, true},
		"unlimited": {providers.Resources{}, true},
		"equal":     {providers.Resources{"instances": 5}, false},
		"shrunk":    {providers.Resources{"instances": 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := run(t, &cloud{limits: providers.Resources{"instances": 5}})
				p.Heed(lesson.Lesson{}.Refuse(lesson.Refusal{Need: providers.Resources{"instances": 1}, Reason: "quota"}))
				if !p.Lessons().Due.After(time.Now()) {
					t.Fatal("no pause after a refusal")
				}
				p.Limit(tc.now)
				if due := !p.Lessons().Due.After(time.Now()); due != tc.due {
					t.Errorf("may be tried at once: %t", due)
				}
			})
		})
	}
}

// Catches a request that waits for room without the limits being asked for sooner, and
// one that has them asked for again and again.
func TestHurriedOnceARequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &cloud{})
		hurried := func() bool {
			select {
			case <-p.Hurried():
				return true
			default:
				return false
			}
		}
		for i, step := range []struct{ want, hurry bool }{{false, false}, {true, true}, {true, false}, {false, false}, {true, true}} {
			p.Want(step.want)
			if got := hurried(); got != step.hurry || p.Wants() != step.want {
				t.Errorf("step %d: hurried %t, wants %t", i, got, p.Wants())
			}
		}
	})
}

// Mistakes: limits that nobody may read keep a provider from being used at all, or pools that honor them do not know why
// they launch nothing.
func TestLimitsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{denied: true}
		p := run(t, c)
		if v := p.View(); v.Unavailable != "" || !strings.Contains(v.NoLimits, "provider north: limits cannot be read") {
			t.Errorf("%+v", v)
		}
		if _, err := (supply.Duty{Provider: p}).Limits(t.Context(), nil); !errors.Is(err, providers.ErrNoLimits) {
			t.Errorf("limits that count: %v", err)
		}
		p.Limit(providers.Resources{"instances": 5})
		if v := p.View(); v.NoLimits != "" {
			t.Errorf("when they can be read: %+v", v)
		}
		ignoring := configs.Provider{Name: "south", Pools: []configs.Pool{{Name: "main", IgnoreProviderQuota: true}}}
		if limits, err := (supply.Duty{Provider: openSection(t, ignoring, c.opener)}).Limits(t.Context(), nil); err != nil || len(limits) > 0 {
			t.Errorf("limits that do not count: %v, %v", limits, err)
		}
	})
}

// A cloud that goes on refusing is one cause, and one warning.
func TestOneWarningForACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := &cloud{answer: errors.New("the cloud refuses our credentials; the cloud is asked again in 15s (HTTP 401, request req-0a1b)")}
		section := configs.Provider{Name: "north", Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small"}}}}}
		log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info})
		p := supply.New(section, registry.New(c.opener, registry.Events{}), log, time.Now, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { p.Run(ctx) })
		for n := range 4 {
			pass(t, time.Minute)
			c.set(func(c *cloud) {
				c.answer = fmt.Errorf("the cloud refuses our credentials; the cloud is asked again in %ds (HTTP 401, request req-%d)", 30*n, n)
			})
		}
		cancel()
		done.Wait()
		if n := strings.Count(out.String(), "does not tell its sizes"); n != 1 {
			t.Errorf("%d warnings in four minutes, want 1:\n%s", n, out.String())
		}
	})
}
