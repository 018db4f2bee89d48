// Package metastatic is the driver whose nodes are slots on nodes of other providers.
package metastatic

import (
	"context"
	"fmt"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// Provider is one section of the driver. It makes no machines: it gives the slots of nodes
// that it asks other providers for, in the tree (providers.Backing), to nodes of its own.
type Provider struct {
	providers.NoImages

	cfg    configs.Provider
	labels map[string]configs.MetastaticLabel
	turn   chan struct{} // one change of ours at a time; launchers of other hosts may be quicker

	mu    sync.Mutex
	known providers.Backing
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Backed   = (*Provider)(nil)
)

// New makes the provider. It contacts nothing.
func New(cfg configs.Provider) *Provider {
	p := &Provider{
		NoImages: providers.NoImages{Driver: cfg.Driver, Provider: cfg.Name}, cfg: cfg,
		labels: map[string]configs.MetastaticLabel{}, turn: make(chan struct{}, 1),
	}
	for _, pool := range cfg.Pools {
		for _, label := range pool.Labels {
			if own, ok := label.Settings.(*configs.MetastaticLabel); ok {
				p.labels[label.Name] = *own
			}
		}
	}
	return p
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider.
func (p *Provider) Close() error { return nil }

// OnBacking implements providers.Backed.
func (p *Provider) OnBacking(known providers.Backing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
}

// backing is what is known of the backing nodes.
//
// Errors: providers.ErrUnusable before it was given.
func (p *Provider) backing(ctx context.Context) (providers.Backing, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		return nil, fmt.Errorf("provider %s: %w: the launcher has not read yet which backing nodes there are", p.cfg.Name, providers.ErrUnusable)
	}
	return p.known, nil
}

// Keeps implements providers.Backed.
func (p *Provider) Keeps(n providers.BackingNode) time.Time {
	label, configured := p.labels[n.Label]
	if !configured || n.Failed != "" || n.Leaving != "" {
		return time.Time{}
	}
	until := n.Launched.Add(label.MinRetentionTime)
	if idle := n.Used.Add(label.GraceTime); idle.After(until) {
		until = idle
	}
	if end := n.Launched.Add(label.MaxAge); label.MaxAge > 0 && end.Before(until) {
		return end
	}
	return until
}

// Limits implements providers.Nodes: what backing nodes take counts where they are.
func (p *Provider) Limits(ctx context.Context, _ providers.Ours) (providers.Resources, error) {
	return providers.Resources{}, context.Cause(ctx)
}

// NodeResources implements providers.Nodes: a slot is an instance, and nothing more, since
// what is below it is counted with its backing node.
func (p *Provider) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	if _, err := p.label(pool, label); err != nil {
		return nil, err
	}
	return providers.Resources{providers.Instances: 1}, nil
}

// label finds a label of a pool.
func (p *Provider) label(pool, name string) (configs.MetastaticLabel, error) {
	for _, section := range p.cfg.Pools {
		if section.Name != pool {
			continue
		}
		for _, label := range section.Labels {
			if own, ok := label.Settings.(*configs.MetastaticLabel); ok && label.Name == name {
				return *own, nil
			}
		}
		return configs.MetastaticLabel{}, fmt.Errorf("%w: pool %s of %s has no label %s", providers.ErrInvalid, pool, p.cfg.Name, name)
	}
	return configs.MetastaticLabel{}, fmt.Errorf("%w: provider %s has no pool %s", providers.ErrInvalid, p.cfg.Name, pool)
}

// ConsoleLog implements providers.Nodes: the console is the backing node's.
func (p *Provider) ConsoleLog(ctx context.Context, _ string, _ int) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("read console in metastatic provider %s: %w", p.cfg.Name, providers.ErrNotSupported)
}
