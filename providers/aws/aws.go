// Package aws makes nodes of Amazon's instances, and stores images in an account.
//
// See DESIGN.md.
package aws

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

// Options are what a provider shares with others of the process. Logger is required.
type Options struct {
	Logger  hclog.Logger
	Secrets *redact.Secrets // is told what we log in with; nil is told nothing
	// CallTime is how long the service may take to begin an answer; 0 is a minute.
	CallTime time.Duration
	// RetryTime, when set, is the longest pause before a call that failed is repeated, and that
	// is done twice only: a person waits.
	RetryTime time.Duration
	// Poll is the shortest pause between two looks at what is awaited; 0 is 2 s.
	Poll time.Duration
	// Settle is how long what was made may be unknown to the service; 0 is 2 min.
	Settle time.Duration
}

// Provider is one provider section of the driver aws.
type Provider struct {
	cfg     configs.Provider
	own     *configs.AWSDriver
	log     hclog.Logger
	account *account
	roster  *roster
	fresh   fresh
	turns   providers.Turns
	lacking lacking
	spent   spent
	poll    time.Duration

	images    cached[types.Image]
	sizes     cached[types.InstanceTypeInfo]
	nets      cached[[]types.Subnet]
	zones     cached[[]string]
	zoneless  atomic.Bool // the last list of zones failed
	quotas    cached[map[string]quota]
	templates cached[string]
	leaks     suspects

	interrupted atomic.Pointer[map[string]string] // instances that Amazon has ended, with why
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Cleaner  = (*Provider)(nil)
	_ providers.Watcher  = (*Provider)(nil)
	_ providers.Asker    = (*Provider)(nil)
)

const (
	defaultCallTime = time.Minute
	defaultPoll     = 2 * time.Second
	defaultSettle   = 2 * time.Minute
)

// New makes the provider of a section. It contacts nothing but what credentials come from.
//
// Errors: providers.ErrUnusable when the configuration of the SDK cannot be read.
func New(cfg configs.Provider, opts Options) (*Provider, error) {
	own := configs.SettingsOf[configs.AWSDriver](&cfg)
	if own == nil {
		return nil, fmt.Errorf("open provider %s: %w: it has no section of an account", cfg.Name, providers.ErrInvalid)
	}
	a, err := connect(&cfg, own, opts)
	if err != nil {
		return nil, fmt.Errorf("open provider %s: %w", cfg.Name, err)
	}
	p := &Provider{cfg: cfg, own: own, log: opts.Logger, account: a, poll: opts.Poll}
	if p.poll == 0 {
		p.poll = defaultPoll
	}
	p.fresh.settle = opts.Settle
	if p.fresh.settle == 0 {
		p.fresh.settle = defaultSettle
	}
	p.roster = &roster{list: p.listInstances}
	return p, nil
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider.
func (p *Provider) Close() error {
	p.account.close()
	return nil
}

// Calls implements providers.Asker.
func (p *Provider) Calls() []providers.Calls { return p.account.calls.Calls() }

// offer is what a label means in a pool.
type offer struct {
	pool  *configs.Pool
	label *configs.PoolLabel
	place *configs.AWSPool
	own   *configs.AWSLabel
}

// offer finds a label of the configuration.
func (p *Provider) offer(pool, label string) (offer, error) {
	if section, ok := p.cfg.Pool(pool); ok {
		if l, ok := section.Label(label); ok {
			place, _ := section.Settings.(*configs.AWSPool)
			if own, ok := l.Settings.(*configs.AWSLabel); ok && place != nil {
				return offer{section, l, place, own}, nil
			}
		}
	}
	return offer{}, fmt.Errorf("%w: pool %s in provider %s does not have the label %s", providers.ErrInvalid, pool, p.cfg.Name, label)
}

// types are the types of instances that a label may get.
func (o offer) types() []string {
	if o.own.Fleet != nil {
		return o.own.Fleet.InstanceTypes
	}
	return []string{o.own.InstanceType}
}

// named adds to an error of a call whose it is, and what it means for a daemon.
func (p *Provider) named(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("provider %s: %s: %w", p.cfg.Name, op, context.Cause(ctx))
	}
	return fmt.Errorf("provider %s: %s: %w", p.cfg.Name, op, failure(err))
}
