package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

const (
	limitsAge  = 5 * time.Minute // how old a provider's limits may become
	quotaPause = time.Second     // how long a provider rests when its cloud says that it is full
)

// cloud is one configured provider with what is known of it. It opens the
// provider, and asks it for sizes and limits, in a goroutine of its own, so that
// a provider that does not answer holds up nobody else.
type cloud struct {
	cfg    configs.Provider
	open   func(configs.Provider) (providers.Provider, error)
	log    hclog.Logger
	now    func() time.Time
	notify func()        // something has changed
	ready  chan struct{} // closed when the provider is open

	mu       sync.Mutex
	provider providers.Provider
	limits   providers.Resources
	zones    []string                    // of the cloud; none when it does not tell
	needs    map[string]map[string]Offer // by pool and label; without Ready
	trouble  string                      // why it cannot serve; "" when it can
	full     fullness
	suspects map[string]bool // machines without a record, at the last look
}

// zoner is a provider that knows its cloud's availability zones.
type zoner interface {
	Zones(ctx context.Context) ([]string, error)
}

// fullness is what follows from a cloud that refuses although we counted room.
type fullness struct {
	until    time.Time
	failures int
	reason   string
}

// run keeps the provider open until ctx ends.
func (c *cloud) run(ctx context.Context) {
	p := c.opened(ctx)
	if p == nil {
		return
	}
	defer func() {
		if err := p.Close(); err != nil {
			c.log.Warn("Close provider", "error", err)
		}
	}()
	retry := backoff{first: time.Second, longest: time.Minute}
	failures := 0
	for {
		wait := limitsAge
		if err := c.learn(ctx, p); err != nil {
			failures++
			wait = retry.after(failures)
			c.log.Warn("Provider does not tell its sizes and limits; the old ones count", "error", err, "retry", wait)
		} else {
			failures = 0
		}
		c.notify()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// opened opens the provider, however often that takes; nil when ctx ends first.
func (c *cloud) opened(ctx context.Context) providers.Provider {
	retry := backoff{first: time.Second, longest: time.Minute}
	for failures := 1; ; failures++ {
		p, err := c.open(c.cfg)
		if err == nil {
			c.mu.Lock()
			c.provider = p
			c.mu.Unlock()
			close(c.ready)
			c.notify() // nodes may have waited for it
			return p
		}
		wait := retry.after(failures)
		c.log.Error("Cannot open provider", "error", err, "retry", wait)
		c.mu.Lock()
		c.trouble = fmt.Sprintf("provider %s cannot be opened: %v", c.cfg.Name, err)
		c.mu.Unlock()
		c.notify()
		if !sleep(ctx.Done(), wait) {
			return nil
		}
	}
}

// learn asks for the limits and for what a node of each label takes.
func (c *cloud) learn(ctx context.Context, p providers.Provider) error {
	needs := map[string]map[string]Offer{}
	var failed error
	for _, pool := range c.cfg.Pools {
		needs[pool.Name] = map[string]Offer{}
		for _, label := range labelsOf(pool) {
			res, err := p.NodeResources(ctx, pool.Name, label.Name)
			switch {
			case errors.Is(err, providers.ErrInvalid):
				needs[pool.Name][label.Name] = Offer{Fault: err.Error()}
			case err != nil:
				failed = errors.Join(failed, err)
			default:
				needs[pool.Name][label.Name] = Offer{Needs: res}
			}
		}
	}
	var zones []string
	if z, ok := p.(zoner); ok {
		var err error
		if zones, err = z.Zones(ctx); err != nil {
			c.log.Warn("Provider does not tell its availability zones", "error", err)
		}
	}
	limits, err := c.firstLimits(ctx, p)
	failed = errors.Join(failed, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if zones != nil {
		c.zones = zones
	}
	if err == nil {
		c.limits = limits
	}
	if failed == nil || c.needs == nil {
		c.needs = needs
	}
	c.trouble = ""
	if c.limits == nil {
		c.trouble = fmt.Sprintf("provider %s does not tell its limits: %v", c.cfg.Name, err)
	}
	return failed
}

// firstLimits are the limits as far as they are known; the provider is asked only
// when they are not, so that a start need not wait for the launcher that asks for
// all.
func (c *cloud) firstLimits(ctx context.Context, p providers.Provider) (providers.Resources, error) {
	c.mu.Lock()
	known := c.limits
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return p.Limits(ctx)
}

// limit takes over what the provider said to whoever asked for all.
func (c *cloud) limit(limits providers.Resources) {
	c.mu.Lock()
	c.limits = limits
	if c.needs != nil {
		c.trouble = ""
	}
	c.mu.Unlock()
	c.notify()
}

// refused notes that the cloud said it is full. The provider rests for a
// moment, longer each time.
func (c *cloud) refused(reason error) {
	c.mu.Lock()
	c.full.failures++
	pause := backoff{first: quotaPause, longest: 30 * time.Second}.after(c.full.failures)
	c.full.until, c.full.reason = c.now().Add(pause), reason.Error()
	c.mu.Unlock()
}

// roomier notes that the cloud made a node, or has one less: it need not rest.
func (c *cloud) roomier() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = fullness{}
}

// awaitOpen returns when the provider is open, or ctx has ended.
func (c *cloud) awaitOpen(ctx context.Context) {
	select {
	case <-c.ready:
	case <-ctx.Done():
	}
}

// use is the provider, or ErrNoProvider while it is not open.
func (c *cloud) use() (providers.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.provider == nil {
		return nil, fmt.Errorf("use provider %s: %w", c.cfg.Name, ErrNoProvider)
	}
	return c.provider, nil
}

// cloudView is what a cloud looks like at one moment.
type cloudView struct {
	zones  []string
	limits providers.Resources
	needs  map[string]map[string]Offer
	hold   string
	broken bool      // it never worked yet, for a reason that it told
	again  time.Time // when hold is over by itself; zero when it is not
}

// view tells what is known.
func (c *cloud) view() cloudView {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := cloudView{zones: c.zones, limits: c.limits, needs: c.needs, hold: c.trouble, broken: c.trouble != ""}
	switch {
	case v.hold != "":
	case c.needs == nil:
		v.hold = fmt.Sprintf("provider %s is not open yet", c.cfg.Name)
	case c.full.until.After(c.now()):
		v.hold, v.again = "provider "+c.cfg.Name+" refused: "+c.full.reason, c.full.until
	}
	return v
}

// suspected tells whether a machine was without a record at the last look.
func (c *cloud) suspected(externalID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspects[externalID]
}

// suspect notes the machines without a record of this look.
func (c *cloud) suspect(externalIDs map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects = externalIDs
}
