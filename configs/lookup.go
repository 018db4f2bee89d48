package configs

import (
	"reflect"
	"slices"
)

// DiskImage finds an image by name. Abstract ones are not found.
func (c *Config) DiskImage(name string) (*DiskImage, bool) {
	return find(c.DiskImages, func(x *DiskImage) bool { return x.Name == name })
}

// HasImage reports whether an image is configured, or left out of the configuration
// because of a mistake.
func (c *Config) HasImage(name string) bool {
	_, configured := c.DiskImage(name)
	return configured || c.FrozenImage(name) != ""
}

// Provider finds a provider by name. Skipped ones are not found.
func (c *Config) Provider(name string) (*Provider, bool) {
	return find(c.Providers, func(x *Provider) bool { return x.Name == name })
}

// ProviderNames are the providers of this configuration, also those that are left out
// of it; false when it may have others, whose names it does not tell.
func (c *Config) ProviderNames() (names []string, all bool) {
	for i := range c.Providers {
		names = append(names, c.Providers[i].Name)
	}
	for _, f := range c.Frozen {
		if f.Kind == "provider" && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	all = !slices.Contains(names, "")
	return names, all
}

// Label finds a label by name.
func (c *Config) Label(name string) (*Label, bool) {
	return find(c.Labels, func(x *Label) bool { return x.Name == name })
}

// TenantLimit finds the limits of a tenant by its name.
func (c *Config) TenantLimit(tenant string) (*TenantLimit, bool) {
	return find(c.TenantLimits, func(x *TenantLimit) bool { return x.Tenant == tenant })
}

// IsSkipped tells a provider that is configured but has a driver that we do
// not have: what the tree holds of it is not ours to clean up.
func (c *Config) IsSkipped(provider string) bool {
	return slices.ContainsFunc(c.Skipped, func(x SkippedProvider) bool { return x.Name == provider })
}

// Image finds what the provider says about an image that it lists.
func (p *Provider) Image(name string) (*ProviderImage, bool) {
	return find(p.DiskImages, func(x *ProviderImage) bool { return x.Name == name })
}

// CloudImage finds an image that the cloud has already.
func (p *Provider) CloudImage(name string) (*CloudImage, bool) {
	return find(p.CloudImages, func(x *CloudImage) bool { return x.Name == name })
}

// Pool finds a pool by name.
func (p *Provider) Pool(name string) (*Pool, bool) {
	return find(p.Pools, func(x *Pool) bool { return x.Name == name })
}

// Label finds what the pool says about a label that it offers.
func (p *Pool) Label(name string) (*PoolLabel, bool) {
	return find(p.Labels, func(x *PoolLabel) bool { return x.Name == name })
}

// ProvidersOf are the providers that list an image, in the order of the file,
// without those that it is not uploaded to because something is left out.
func (c *Config) ProvidersOf(image string) []*Provider {
	var list []*Provider
	for i := range c.Providers {
		if _, ok := c.Providers[i].Image(image); ok && c.FrozenUpload(c.Providers[i].Name, image) == "" {
			list = append(list, &c.Providers[i])
		}
	}
	return list
}

// ReceiversOf are the names of the ProvidersOf an image.
func (c *Config) ReceiversOf(image string) []string {
	var names []string
	for _, p := range c.ProvidersOf(image) {
		names = append(names, p.Name)
	}
	return names
}

// ImageFormats are the formats that an image is needed in, sorted: those that
// it asks for itself and those of the providers that list it. It is empty for
// an image that nobody needs.
func (c *Config) ImageFormats(image string) []string {
	var formats []string
	if i, ok := c.DiskImage(image); ok {
		formats = slices.Clone(i.Formats)
	}
	for _, p := range c.ProvidersOf(image) {
		formats = append(formats, p.ImageFormat)
	}
	slices.Sort(formats)
	return slices.Compact(formats)
}

// PoolOffer is a pool that offers a label.
type PoolOffer struct {
	Provider *Provider
	Pool     *Pool
	Label    *PoolLabel // nil in a pool of static nodes
}

// PoolsOf are the pools that offer a label, in the order of the file.
func (c *Config) PoolsOf(label string) []PoolOffer {
	var offers []PoolOffer
	for i := range c.Providers {
		p := &c.Providers[i]
		for j := range p.Pools {
			pool := &p.Pools[j]
			offer, ok := pool.Label(label)
			ok = ok || slices.ContainsFunc(pool.Nodes, func(n StaticNode) bool {
				return slices.Contains(n.Labels, label)
			})
			if ok {
				offers = append(offers, PoolOffer{Provider: p, Pool: pool, Label: offer})
			}
		}
	}
	return offers
}

// Equal reports whether two providers are configured alike, so that a reload may
// keep what runs for the one.
func (p *Provider) Equal(other *Provider) bool { return reflect.DeepEqual(p, other) }

func find[T any](list []T, match func(*T) bool) (*T, bool) {
	for i := range list {
		if match(&list[i]) {
			return &list[i], true
		}
	}
	return nil, false
}
