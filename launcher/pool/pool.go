// Package pool is a configured pool as a launcher serves it: its labels, what they
// boot from, and its limits.
package pool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// ErrNoImage says that no upload of the label's image is ready in this provider, or that
// the label has none. The messages that wrap it are stored as the reason of a failed node.
var ErrNoImage = errors.New("no image is ready")

// Pool is one configured pool that this launcher serves.
type Pool struct {
	ID       string // the launcher id; the same for as long as the process lives
	Provider configs.Provider
	Section  configs.Pool
	Labels   map[string]configs.PoolLabel
	// Frozen says of labels why they are left out of the configuration, and Rest
	// of all that the pool does not have, "" when they are not.
	Frozen map[string]string
	Rest   string
}

// New makes a pool of a section of a provider, with an id that no other has.
func New(host string, provider configs.Provider, section configs.Pool) *Pool {
	p := &Pool{
		ID:       fmt.Sprintf("%s-PoolWorker.%s-%s-%s", host, provider.Name, section.Name, kit.RandomHex(16)),
		Provider: provider, Section: section, Labels: map[string]configs.PoolLabel{},
	}
	for _, l := range supply.Labels(section) {
		p.Labels[l.Name] = l
	}
	return p
}

// Freeze notes what is left out of the configuration of the pool.
func (p *Pool) Freeze(cfg *configs.Config) {
	provider, name := p.Provider.Name, p.Section.Name
	p.Frozen, p.Rest = map[string]string{}, cfg.MayLackLabels(provider, name)
	for label, why := range cfg.Missed() {
		if _, has := p.Labels[label]; !has {
			p.Frozen[label] = why
		}
	}
	for label := range p.Labels {
		if why := cfg.FrozenLabel(provider, name, label); why != "" {
			p.Frozen[label] = why
		}
	}
}

// Priority is the pool's own, else its provider's, else the default.
func (p *Pool) Priority() int {
	return cmp.Or(p.Section.Priority, p.Provider.Priority, schedule.DefaultPriority)
}

// ChecksHostKeys tells whether the host keys of a label's nodes are read.
func (p *Pool) ChecksHostKeys(label string) bool {
	if own := p.Labels[label].HostKeyChecking; own != nil {
		return *own
	}
	return p.Section.HostKeyChecking
}

// Image is what a label boots from, as the configuration has it.
type Image struct {
	DiskImage  string // "" for a cloud image, and for what boots from none
	CloudImage string
	Username   string
	PythonPath string
	ShellType  string
	Connection string
	Port       int // 0 where the configuration says none
}

// Image finds the settings of a label's image in the configuration.
//
// Errors: ErrNoImage when there is none.
func (p *Pool) Image(cfg *configs.Config, label string) (Image, error) {
	l, ok := p.Labels[label]
	if !ok {
		return Image{}, fmt.Errorf("find image of label %s: pool %s of %s does not have the label: %w",
			label, p.Section.Name, p.Provider.Name, ErrNoImage)
	}
	if l.Connection != "" {
		return Image{Username: "zuul", PythonPath: l.PythonPath, ShellType: l.ShellType, Connection: l.Connection}, nil
	}
	for _, c := range p.Provider.CloudImages {
		if l.CloudImage != "" && c.Name == l.CloudImage {
			return Image{
				CloudImage: c.Name, Username: c.Username, PythonPath: c.PythonPath, ShellType: c.ShellType,
				Connection: c.ConnectionType, Port: c.ConnectionPort,
			}, nil
		}
	}
	for _, d := range cfg.DiskImages {
		if d.Name != l.DiskImage {
			continue
		}
		image := Image{
			DiskImage: d.Name, Username: d.Username, PythonPath: d.PythonPath, ShellType: d.ShellType,
			Connection: "ssh",
		}
		for _, here := range p.Provider.DiskImages {
			if here.Name == d.Name {
				image.Connection, image.Port = cmp.Or(here.ConnectionType, "ssh"), here.ConnectionPort
				image.Username, image.PythonPath = cmp.Or(here.Username, image.Username), cmp.Or(here.PythonPath, image.PythonPath)
				image.ShellType = cmp.Or(here.ShellType, image.ShellType)
			}
		}
		return image, nil
	}
	return Image{}, fmt.Errorf("find image of label %s: neither diskimage %q nor cloud-image %q is configured: %w",
		label, l.DiskImage, l.CloudImage, ErrNoImage)
}

// Offers reports whether the pool has all labels.
func (p *Pool) Offers(labels []string) bool {
	for _, label := range labels {
		if _, has := p.Labels[label]; !has {
			return false
		}
	}
	return len(labels) > 0
}

// Addressable counts the requests that wait and whose labels are all of this pool.
func (p *Pool) Addressable(requests []*zkmodel.Request) int {
	count := 0
	for _, r := range requests {
		if r.State == zkmodel.RequestRequested && p.Offers(r.NodeTypes) {
			count++
		}
	}
	return count
}

// Limits are the limits that the configuration sets for the pool.
func (p *Pool) Limits() providers.Resources {
	limits := providers.Resources{}
	maps.Copy(limits, p.Section.MaxResources)
	for _, one := range [...]struct {
		name string
		n    int
	}{
		{providers.Instances, p.Section.MaxServers},
		{providers.Cores, p.Section.MaxCores},
		{providers.RAM, p.Section.MaxRAM},
		{providers.Volumes, p.Section.MaxVolumes},
		{providers.VolumeGB, p.Section.MaxVolumeGB},
	} {
		if one.n >= 0 {
			limits[one.name] = one.n
		}
	}
	return limits
}

// TenantLimits are the limits of the configuration, by tenant.
func TenantLimits(cfg *configs.Config) map[string]providers.Resources {
	limits := make(map[string]providers.Resources, len(cfg.TenantLimits))
	for _, t := range cfg.TenantLimits {
		limits[t.Tenant] = t.Limits
	}
	return limits
}
