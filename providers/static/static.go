// Package static is the provider of machines that exist already. It makes and
// deletes none: it only says which there are. The launcher registers each slot of
// a machine as a ready node, checks that it lives, and registers it anew once it
// was used.
package static

import (
	"context"
	"fmt"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// Provider is one provider section of the driver static.
type Provider struct {
	providers.NoImages

	cfg configs.Provider
}

var _ providers.Provider = (*Provider)(nil)

// New makes the provider. It contacts nothing.
func New(cfg configs.Provider) *Provider {
	return &Provider{providers.NoImages{Driver: cfg.Driver, Provider: cfg.Name}, cfg}
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider.
func (p *Provider) Close() error { return nil }

// Slots lists all slots of all machines, in the order of the configuration.
func (p *Provider) Slots() []providers.Slot {
	var slots []providers.Slot
	for _, pool := range p.cfg.Pools {
		for _, node := range pool.Nodes {
			for number := range max(node.MaxParallelJobs, 1) {
				slots = append(slots, providers.Slot{Pool: pool.Name, Node: node, Number: number})
			}
		}
	}
	return slots
}

// unsupported says that machines which exist already cannot be had that way.
func (p *Provider) unsupported(what string) error {
	return fmt.Errorf("%s in static provider %s: %w", what, p.cfg.Name, providers.ErrNotSupported)
}

// CreateNode implements providers.Nodes: machines are not made.
func (p *Provider) CreateNode(context.Context, providers.NodeSpec) (string, error) {
	return "", p.unsupported("create node")
}

// WaitNode implements providers.Nodes.
func (p *Provider) WaitNode(context.Context, string) (providers.Instance, error) {
	return providers.Instance{}, p.unsupported("wait for node")
}

// DeleteNode implements providers.Nodes: the machine stays.
func (p *Provider) DeleteNode(context.Context, string) error { return nil }

// ListNodes implements providers.Nodes: none of them is of our making.
func (p *Provider) ListNodes(context.Context) ([]providers.NodeInfo, error) { return nil, nil }

// ConsoleLog implements providers.Nodes.
func (p *Provider) ConsoleLog(context.Context, string, int) ([]byte, error) {
	return nil, p.unsupported("read console")
}

// Limits implements providers.Nodes: there is as much as there is.
func (p *Provider) Limits(context.Context, providers.Ours) (providers.Resources, error) {
	return providers.Resources{}, nil
}

// NodeResources implements providers.Nodes.
func (p *Provider) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	for _, s := range p.Slots() {
		if s.Pool == pool && slices.Contains(s.Node.Labels, label) {
			return providers.Resources{providers.Instances: 1}, nil
		}
	}
	return nil, fmt.Errorf("size node: %w: no machine of pool %s in static provider %s has the label %s",
		providers.ErrInvalid, pool, p.cfg.Name, label)
}
