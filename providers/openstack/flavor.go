package openstack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"

	"poolkeeper/providers"
)

// flavor is a size of machine that the cloud sells.
type flavor struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	RAM   int    `json:"ram"` // MiB
	Cores int    `json:"vcpus"`
}

// listFlavors lists those that we may use, smallest first.
func (p *Provider) listFlavors(ctx context.Context) ([]flavor, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	all, err := pages[flavor](ctx, flavors.ListDetail(s.compute, flavors.ListOpts{Limit: pageSize}), "flavors")
	if err != nil {
		return nil, p.failure(ctx, "list flavors", err)
	}
	slices.SortFunc(all, func(a, b flavor) int {
		return cmp.Or(cmp.Compare(a.RAM, b.RAM), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// flavor chooses the flavor of a label: the one that is named, or the smallest
// with enough memory whose name contains flavor-name.
func (p *Provider) flavor(ctx context.Context, o offer) (flavor, error) {
	return seek(ctx, &p.flavors, p.now, p.listFlavors, func(all []flavor) (flavor, error) { return chooseFlavor(o, all) })
}

func chooseFlavor(o offer, all []flavor) (flavor, error) {
	name, ram := o.label.FlavorName, o.label.MinRAM
	if ram == 0 {
		for _, f := range all {
			if f.Name == name || f.ID == name {
				return f, nil
			}
		}
		return flavor{}, o.invalid("flavor-name", "the cloud has no flavor %q, it has %s", name, flavorNames(all))
	}
	var best flavor
	for _, f := range all {
		if !strings.Contains(f.Name, name) {
			continue
		}
		if f.RAM >= ram {
			return f, nil
		}
		best = f
	}
	if best.ID == "" {
		return flavor{}, o.invalid("flavor-name", "no flavor's name contains %q, there are %s", name, flavorNames(all))
	}
	return flavor{}, o.invalid("min-ram", "%d MiB do not fit, the largest flavor %s has %d", ram, best.Name, best.RAM)
}

func flavorNames(all []flavor) string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	return listed(names)
}

// listed joins at most a dozen names for an error message.
func listed(names []string) string {
	const most = 12
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// NodeResources implements providers.Nodes.
func (p *Provider) NodeResources(ctx context.Context, pool, label string) (providers.Resources, error) {
	o, err := p.offer(pool, label)
	if err != nil {
		return nil, err
	}
	f, err := p.flavor(ctx, o)
	if err != nil {
		return nil, err
	}
	need := providers.Resources{providers.Instances: 1, providers.Cores: f.Cores, providers.RAM: f.RAM}
	if o.label.BootFromVolume {
		need[providers.Volumes], need[providers.VolumeGB] = 1, o.label.VolumeSize
	}
	return need, nil
}
