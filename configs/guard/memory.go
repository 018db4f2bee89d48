// Package guard judges a configuration that takes another one's place: what of it
// would loosen a limit, or give up what is in use, by mistake. It decides, and does
// nothing: no file, no ZooKeeper.
package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"poolkeeper/configs"
)

// Memory is what judgement needs of a configuration: names and limits, nothing that
// may be secret. It outlives the process that had the configuration.
type Memory struct {
	Images    []string                  `json:"images,omitempty"`
	Labels    []string                  `json:"labels,omitempty"`
	Providers []Provider                `json:"providers,omitempty"`
	Limits    map[string]int            `json:"limits,omitempty"`  // those that there are, by their place in the file
	Tenants   map[string]map[string]int `json:"tenants,omitempty"` // limits of tenants, by resource
	// Unknown are the keys that nobody knows, by their section: those that have always
	// been there are no reason to doubt a change.
	Unknown map[string][]string `json:"unknown,omitempty"`
}

// Provider is what is remembered of a provider.
type Provider struct {
	Name   string   `json:"name"`
	Images []string `json:"images,omitempty"`
	Pools  []Pool   `json:"pools,omitempty"`
}

// Pool is what is remembered of a pool.
type Pool struct {
	Name string `json:"name"`
	// Labels are those of the pool, and the image that each boots from; "" for an
	// image that the cloud has, or a machine that exists already.
	Labels map[string]string `json:"labels,omitempty"`
}

// Of is what is to be remembered of a configuration.
func Of(cfg *configs.Config) Memory {
	m := Memory{Limits: map[string]int{}, Tenants: map[string]map[string]int{}, Unknown: cfg.UnknownKeys()}
	for _, image := range cfg.DiskImages {
		m.Images = append(m.Images, image.Name)
	}
	for _, label := range cfg.Labels {
		m.Labels = append(m.Labels, label.Name)
	}
	for _, p := range cfg.Providers {
		m.Providers = append(m.Providers, providerOf(p))
	}
	for _, limit := range cfg.Limits() {
		if n := limit.Get(); n != configs.Unlimited {
			m.Limits[limit.Path()] = n
		}
	}
	for _, t := range cfg.TenantLimits {
		m.Tenants[t.Tenant] = maps.Clone(t.Limits)
	}
	return m
}

func providerOf(p configs.Provider) Provider {
	one := Provider{Name: p.Name}
	for _, image := range p.DiskImages {
		one.Images = append(one.Images, image.Name)
	}
	for _, pool := range p.Pools {
		section := Pool{Name: pool.Name, Labels: map[string]string{}}
		for _, l := range pool.Labels {
			section.Labels[l.Name] = l.DiskImage
		}
		for _, n := range pool.Nodes {
			for _, l := range n.Labels {
				section.Labels[l] = ""
			}
		}
		one.Pools = append(one.Pools, section)
	}
	return one
}

// Digest tells memories apart: two configurations with the same names and limits
// have the same, whatever unknown keys they have.
func (m Memory) Digest() string {
	m.Unknown = nil
	data, err := json.Marshal(m)
	if err != nil { // of texts and numbers
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func (m Memory) provider(name string) *Provider {
	for i := range m.Providers {
		if m.Providers[i].Name == name {
			return &m.Providers[i]
		}
	}
	return nil
}

func (p *Provider) pool(name string) *Pool {
	for i := range p.Pools {
		if p.Pools[i].Name == name {
			return &p.Pools[i]
		}
	}
	return nil
}

// labelNames are the labels of a pool, sorted.
func (p Pool) labelNames() []string { return slices.Sorted(maps.Keys(p.Labels)) }
