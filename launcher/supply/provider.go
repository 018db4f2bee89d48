package supply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
)

const (
	// openTime is how long a provider may take to answer first until that is told.
	openTime = 3 * time.Second
	// troubleAge is how long a trouble is believed of a provider that answers.
	troubleAge = time.Minute
	// faultAge is how long a label that names something unknown is believed to be wrong.
	faultAge = 15 * time.Second
)

// Provider is one configured provider with what is known of it. It has the provider
// opened, and asks it for sizes and limits, in a goroutine of its own, so that
// a provider that does not answer holds up nobody else.
type Provider struct {
	cfg      configs.Provider
	registry *registry.Registry
	log      hclog.Logger
	now      func() time.Time
	notify   func()        // something has changed
	hurry    chan struct{} // a request begins to wait for room
	failed   chan struct{} // it tells that it cannot be used
	ready    chan struct{} // closed when the provider is open

	mu       sync.Mutex
	provider providers.Provider
	site     string            // the installation; "" is not known yet
	backing  providers.Backing // for one that has backing nodes; nil is not known yet
	limits   providers.Resources
	noLimits string                               // why nobody may read them; "" when they can be read
	zones    []string                             // of the cloud; none when it does not tell
	needs    map[string]map[string]schedule.Offer // by pool and label; without Ready
	known    bool                                 // it told once what all labels take
	trouble  string                               // why it could not be opened or asked; "" when it could
	failing  string                               // why it cannot be used, as it told itself; "" when it can
	answered bool                                 // it has told its limits since: not all of it fails
	taught   Taught                               // by refusals
	wanted   bool                                 // a request waits for room
	mute     bool                                 // it did not answer the last creation
	static   bool                                 // its machines exist already; known when it is open
	paused   string                               // who has paused it, and why
	doubts   map[string]schedule.Doubt            // of idle machines, by external id
	failures map[poolLabel]failure                // launches that failed
	slow     map[string]slowCall                  // calls that the cloud answers slowly
	troubled time.Time                            // since when it has a trouble; zero when it has none
}

// New makes a Provider of a section of the configuration. notify is called, and may not
// block, when something has changed.
func New(cfg configs.Provider, opened *registry.Registry, log hclog.Logger, now func() time.Time, notify func()) *Provider {
	return &Provider{
		cfg: cfg, registry: opened, log: log, now: now, notify: notify,
		ready: make(chan struct{}), hurry: make(chan struct{}, 1), failed: make(chan struct{}, 1),
	}
}

// Section is its section of the configuration.
func (c *Provider) Section() configs.Provider { return c.cfg }

// Run keeps the provider open until ctx ends.
func (c *Provider) Run(ctx context.Context) {
	lease, err := c.registry.Await(ctx, c.cfg, c.unopened)
	if err != nil {
		return // ctx has ended
	}
	defer func() {
		if err := lease.Retire(); err != nil {
			c.log.Warn("Close provider", "error", err)
		}
	}()
	p := lease.Provider
	c.opened(p)
	silent := clock.AfterFunc(ctx, openTime, c.silent)
	defer silent.Stop()
	var preparing sync.WaitGroup
	preparing.Go(func() { c.prepare(ctx, p) })
	defer preparing.Wait() // before it is closed
	c.keepLearning(ctx, p)
}

// keepLearning asks the provider for what it takes and has room for, now and then;
// after it failed soon, and later each time.
func (c *Provider) keepLearning(ctx context.Context, p providers.Provider) {
	retry := kit.Backoff{First: time.Second, Longest: time.Minute}
	failures, warned := 0, ""
	for {
		wait := providers.LimitsAge
		if err := c.learn(ctx, p); err != nil && ctx.Err() == nil {
			failures++
			wait = retry.After(failures)
			level := hclog.Warn
			if why := kit.Cause(err); why == warned {
				level = hclog.Debug // one warning for each cause
			} else {
				warned = why
			}
			c.log.Log(level, "Provider does not tell its sizes and limits; the old ones count", "error", err, "retry", wait)
		} else {
			failures, warned = 0, ""
			switch v := c.View(); {
			case v.faulty():
				wait = faultAge
			case v.Trouble != "":
				wait = troubleAge
			}
		}
		c.notify()
		timer := clock.NewTimer(ctx, wait)
		select {
		case <-timer.C:
		case <-c.failed: // what it knows is of no use; is it there?
			timer.Stop()
			failures = max(failures, 1)
			if clock.Sleep(ctx, retry.After(failures)) != nil {
				return
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// prepare lets the provider find out what it would else find out at the first node.
func (c *Provider) prepare(ctx context.Context, p providers.Provider) {
	preparer, ok := p.(providers.Preparer)
	if !ok {
		return
	}
	if err := preparer.Prepare(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("Provider cannot be prepared; its first node will try again", "error", err)
	}
}

// unopened notes why the provider could not be opened.
func (c *Provider) unopened(err error, wait time.Duration) {
	c.log.Error("Cannot open provider; requests that only it could serve wait", "error", err, "retry", wait)
	c.mu.Lock()
	c.trouble = fmt.Sprintf("provider %s cannot be opened: %v", c.cfg.Name, err)
	c.mu.Unlock()
	c.notify()
}

// opened takes over the provider.
func (c *Provider) opened(p providers.Provider) {
	c.mu.Lock()
	c.provider = p
	c.tellIt()
	_, c.static = p.(providers.Slotter)
	c.mu.Unlock()
	close(c.ready)
	c.notify() // nodes may have waited for it
}

// OfInstallation tells the provider whose it is, at once or when it is opened.
func (c *Provider) OfInstallation(site string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.site = site
	c.tellIt()
}

// OnBacking gives what is known of its backing nodes to a provider that has some, at once or
// when it is opened.
func (c *Provider) OnBacking(known providers.Backing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backing = known
	c.tellIt()
}

// Backed is the provider as one whose nodes are slots on nodes of others; nil when it is not, or
// not open.
func (c *Provider) Backed() providers.Backed {
	c.mu.Lock()
	defer c.mu.Unlock()
	backed, _ := c.provider.(providers.Backed)
	return backed
}

func (c *Provider) tellIt() {
	if backed, ok := c.provider.(providers.Backed); ok && c.backing != nil {
		backed.OnBacking(c.backing)
	}
	if sited, ok := c.provider.(providers.Sited); ok && c.site != "" {
		sited.OfInstallation(c.site)
	}
}

// silent notes that the provider has not answered for openTime.
func (c *Provider) silent() {
	c.mu.Lock()
	none := !c.known && c.trouble == "" && c.failing == ""
	if none {
		c.trouble = fmt.Sprintf("provider %s has not answered since it was opened", c.cfg.Name)
	}
	c.mu.Unlock()
	if none {
		c.log.Warn("Provider does not answer; requests that only it could serve wait", "for", openTime)
		c.notify()
	}
}

// AwaitOpen returns when the provider is open, or ctx has ended.
func (c *Provider) AwaitOpen(ctx context.Context) {
	select {
	case <-c.ready:
	case <-ctx.Done():
	}
}

// IsStatic reports whether its machines exist already; false while it is not open.
func (c *Provider) IsStatic() bool { return c.View().Static }
