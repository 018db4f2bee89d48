// Package kubernetes makes nodes of a Kubernetes cluster: namespaces, and pods. The driver
// kubernetes gives each node a namespace of its own, and a pod in it where the label's type is
// pod; the driver openshiftpods makes pods in namespaces that exist already, one for each pool.
//
// See DESIGN.md.
package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

// Options are what a provider shares with others of the process.
type Options struct {
	Secrets *redact.Secrets // is told what we log in with; nil is told nothing
	// CallTime is how long one call may take; 0 is 30 s.
	CallTime time.Duration
}

// Provider is one provider section of the driver kubernetes or openshiftpods.
type Provider struct {
	providers.NoImages

	cfg     configs.Provider
	own     *configs.KubernetesDriver
	cluster *cluster
	kind    kind
	site    site
	// creating has one creation of a node at a time: of two, a quota would count both.
	creating providers.Turns
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Sited    = (*Provider)(nil)
)

// kind is what a node is: a namespace of its own, or a pod in one that others share.
type kind interface {
	// place is where a node's object is, and whether an id can be one.
	place(externalID string) (place, bool)
	// create makes the object of a node; what exists already is no error but found as AlreadyExists.
	create(ctx context.Context, at place, spec providers.NodeSpec, label *configs.PoolLabel) error
	// name is what a node's object is called, and what else, when that is taken.
	name(spec providers.NodeSpec, mark string) place
	// list tells all objects that carry the provider's name.
	list(ctx context.Context) ([]object, error)
	// usable proves that nodes can be made, in some pool at least.
	usable(ctx context.Context) error
	// refused says what it means that the cluster refuses us when a node of a pool is to be made.
	refused(ctx context.Context, pool string, err error) error
	// wait returns when the node can be used.
	wait(ctx context.Context, o *object, pool *configs.Pool, label *configs.PoolLabel) (providers.Instance, error)
	// rights are what we have to be allowed to do.
	rights() []right
	// trial is where a cluster can be asked whether it would make the pod of a label, which may have none.
	trial(pool *configs.Pool, label *configs.PoolLabel) (at place, isPod bool)
}

// New makes the provider of a section of the driver kubernetes. It contacts nothing.
//
// Errors: providers.ErrUnusable when the kubeconfig cannot be used.
func New(cfg configs.Provider, opts Options) (*Provider, error) {
	p, err := open(cfg, opts)
	if err == nil {
		p.kind = &namespaces{p}
	}
	return p, err
}

// NewPods makes the provider of a section of the driver openshiftpods. It contacts nothing.
//
// Errors: providers.ErrUnusable when the kubeconfig cannot be used.
func NewPods(cfg configs.Provider, opts Options) (*Provider, error) {
	p, err := open(cfg, opts)
	if err == nil {
		p.kind = &pods{p}
	}
	return p, err
}

func open(cfg configs.Provider, opts Options) (*Provider, error) {
	own := configs.SettingsOf[configs.KubernetesDriver](&cfg)
	if own == nil {
		return nil, fmt.Errorf("open provider %s: %w: it has no section of a cluster", cfg.Name, providers.ErrInvalid)
	}
	c, err := connect(own.Context, opts)
	if err != nil {
		return nil, fmt.Errorf("open provider %s: %w", cfg.Name, err)
	}
	return &Provider{
		NoImages: providers.NoImages{Driver: cfg.Driver, Provider: cfg.Name}, cfg: cfg, own: own, cluster: c,
	}, nil
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider.
func (p *Provider) Close() error {
	p.cluster.close()
	return nil
}

// label finds a label of the configuration.
func (p *Provider) label(pool, label string) (*configs.Pool, *configs.PoolLabel, error) {
	if section, ok := p.cfg.Pool(pool); ok {
		if l, ok := section.Label(label); ok {
			if _, ok := l.Settings.(*configs.KubernetesLabel); ok {
				return section, l, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%w: pool %s in provider %s does not have the label %s", providers.ErrInvalid, pool, p.cfg.Name, label)
}

// NodeResources implements providers.Nodes. As Nodepool's, it counts what is requested.
func (p *Provider) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	_, l, err := p.label(pool, label)
	if err != nil {
		return nil, fmt.Errorf("size node: %w", err)
	}
	k, _ := l.Settings.(*configs.KubernetesLabel)
	takes := providers.Resources{providers.Instances: 1}
	maps.Copy(takes, k.ExtraResources)
	if k.CPU > 0 {
		takes[providers.Cores] = k.CPU
	}
	if k.Memory > 0 {
		takes[providers.RAM] = k.Memory
	}
	if k.GPU > 0 && k.GPUResource != "" {
		takes[k.GPUResource] = int(math.Ceil(k.GPU))
	}
	return takes, nil
}

// ConsoleLog implements providers.Nodes: neither a namespace nor a pod has a console.
func (p *Provider) ConsoleLog(context.Context, string, int) ([]byte, error) {
	return nil, fmt.Errorf("read console in provider %s: %w", p.cfg.Name, providers.ErrNotSupported)
}
