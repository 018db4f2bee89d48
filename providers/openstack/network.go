package openstack

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
)

// network is what we need of a network; Neutron tells more.
type network struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	External bool   `json:"router:external"`
	Physical string `json:"provider:physical_network"` // often hidden from projects
}

// listNetworks lists those that we can see; none where the cloud has no
// Neutron.
func (p *Provider) listNetworks(ctx context.Context) ([]network, error) {
	s, err := p.session(ctx)
	if err != nil || s.network == nil {
		return nil, err
	}
	all, err := pages[network](ctx, networks.List(s.network, networks.ListOpts{Limit: pageSize}), "networks")
	if err != nil {
		return nil, p.failure(ctx, "list networks", err)
	}
	return all, nil
}

// attachments turns a label's networks, names or ids, into ids.
func (p *Provider) attachments(ctx context.Context, o offer) ([]servers.Network, error) {
	if len(o.label.Networks) == 0 {
		return nil, nil
	}
	all, err := p.networks.get(ctx, p.now, p.listNetworks)
	if err != nil {
		return nil, err
	}
	var attached []servers.Network
	for _, name := range o.label.Networks {
		id, err := networkID(o, name, all)
		if err != nil {
			p.networks.forget() // it may be made meanwhile
			return nil, err
		}
		attached = append(attached, servers.Network{UUID: id})
	}
	return attached, nil
}

// networkID finds one network. An id counts before a name, and is taken as it
// is where the cloud has no list.
func networkID(o offer, name string, all []network) (string, error) {
	var found []string
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.Name
		switch name {
		case n.ID:
			return n.ID, nil
		case n.Name:
			found = append(found, n.ID)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", o.invalid("networks", "%d networks are called %q, write the id of one: %s", len(found), name, listed(found))
	case len(all) == 0 && isUUID(name):
		return name, nil
	}
	return "", o.invalid("networks", "the cloud has no network %q, it has %s", name, listed(names))
}
