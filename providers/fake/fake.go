// Package fake is Nodepool's fake driver: a pretended cloud for tests and load.
//
// Its machines are entries in a table, running a moment after they were
// created, with the word "fake" for an address. The table lives in memory, or
// in a folder that several processes share. Failures and delays are injected
// by the configuration, or by a Hook from Go.
package fake

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// What Nodepool's fake cloud offers. Its quota is 100 cores and 1,000,000 MiB
// for 20 instances; another number of instances scales both.
const (
	defaultInstances = 20
	defaultDelay     = 100 * time.Millisecond
	coresPerInstance = 5
	ramPerInstance   = 50_000
	nodeCores        = 4
	nodeRAM          = 8192
	volumes          = 100
	volumeGB         = 1_000_000
)

// The words that it answers with.
const (
	cloud      = "fake"
	region     = "fake-region"
	address    = "fake"
	hostKey    = "ssh-rsa FAKEKEY"
	shouldFail = "SHOULD_FAIL" // the property that makes an upload or create fail
)

// zones are the availability zones.
func zones() []string { return []string{"az1", "az2"} }

// Provider is one pretended cloud account.
type Provider struct {
	cfg    configs.Provider
	fake   configs.FakeDriver
	log    hclog.Logger
	ledger ledger
	faults faults
	spread atomic.Uint32 // spreads machines over the availability zones
	ends   atomic.Pointer[[]providers.End]
	// onlooker says that faults of the shared folder are not for it.
	onlooker bool
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Ender    = (*Provider)(nil)
)

// New opens the cloud of one provider section. Without settings of its own it is
// Nodepool's stock: 20 instances, 0.1 s for everything.
//
// Errors: providers.ErrInvalid for settings that cannot work, or the shared
// folder's own.
func New(cfg configs.Provider, log hclog.Logger) (*Provider, error) {
	settings := configs.FakeDriver{
		MaxInstances: defaultInstances, BootDelay: defaultDelay, UploadDelay: defaultDelay,
	}
	if own := configs.SettingsOf[configs.FakeDriver](&cfg); own != nil {
		settings = *own
	}
	if settings.MaxInstances == 0 {
		settings.MaxInstances = defaultInstances
	}
	for op, every := range settings.FailEvery {
		if !knownOp(op) || every < 0 {
			return nil, fmt.Errorf("open fake provider %s: %w: fail-every: %s: %d",
				cfg.Name, providers.ErrInvalid, op, every)
		}
	}
	l, err := openLedger(settings.Dir, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("open fake provider %s: %w", cfg.Name, err)
	}
	return &Provider{
		cfg: cfg, fake: settings, log: log.Named("fake").With("provider", cfg.Name), ledger: l,
		faults: faults{every: maps.Clone(settings.FailEvery), calls: map[string]int{}},
	}, nil
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider. What is in memory is forgotten with the
// Provider; a shared folder keeps its contents.
func (p *Provider) Close() error { return p.ledger.close() }

// SetHook installs what every call asks from now on; nil removes it.
func (p *Provider) SetHook(h Hook) { p.faults.set(h) }

// SetEnds says what Ends tells from now on: by itself it knows nothing that ends.
func (p *Provider) SetEnds(ends ...providers.End) { p.ends.Store(&ends) }

// Ends implements providers.Ender.
func (p *Provider) Ends() []providers.End {
	if ends := p.ends.Load(); ends != nil {
		return slices.Clone(*ends)
	}
	return nil
}
