package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"poolkeeper/providers"
	"poolkeeper/providers/openstack/clouds"
)

// network is what we need of a network; Neutron tells more.
type network struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	External bool   `json:"router:external"`
	Shared   bool   `json:"shared"`                    // of another project perhaps, whose routers we cannot see
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

// paths is how floating IPs can lead to the networks of servers.
type paths struct {
	gateways map[string]bool     // networks that have an IPv4 subnet with a gateway
	routes   map[string][]string // the external networks to which routers lead, by network
	private  map[string]bool     // networks that have an IPv4 subnet of a private range
	public   map[string]bool     // networks that have another IPv4 subnet
}

// listPaths reads the subnets and routers that we can see. A router of another project is hidden.
func (p *Provider) listPaths(ctx context.Context) (paths, error) {
	found := paths{gateways: map[string]bool{}, routes: map[string][]string{}, private: map[string]bool{}, public: map[string]bool{}}
	s, err := p.session(ctx)
	if err != nil || s.network == nil {
		return found, err
	}
	nets, err := pages[subnets.Subnet](ctx, subnets.List(s.network, subnets.ListOpts{IPVersion: 4, Limit: pageSize}), "subnets")
	if err != nil {
		return found, p.failure(ctx, "list subnets", err)
	}
	for _, subnet := range nets {
		if subnet.GatewayIP != "" {
			found.gateways[subnet.NetworkID] = true
		}
		prefix, err := netip.ParsePrefix(subnet.CIDR)
		ranges := found.public
		if err == nil && !isPublic(prefix.Addr()) {
			ranges = found.private
		}
		ranges[subnet.NetworkID] = true
	}
	all, err := pages[routers.Router](ctx, routers.List(s.network, routers.ListOpts{Limit: pageSize}), "routers")
	if missing(err) || is(err, http.StatusForbidden) {
		return found, nil // a cloud without routers, or one that hides them
	}
	if err != nil {
		return found, p.failure(ctx, "list routers", err)
	}
	for _, router := range all {
		outside := router.GatewayInfo.NetworkID
		if outside == "" || !router.AdminStateUp {
			continue
		}
		legs, err := pages[ports.Port](ctx, ports.List(s.network, ports.ListOpts{DeviceID: router.ID, Limit: pageSize}), "ports")
		if err != nil {
			return found, p.failure(ctx, "list ports of router "+router.ID, err)
		}
		for _, leg := range legs {
			found.routes[leg.NetworkID] = append(found.routes[leg.NetworkID], outside)
		}
	}
	return found, nil
}

// blind reports whether no floating IP can lead to any of a label's networks, which need one.
func (t paths) blind(wanted, outside []string, known []network, hints []clouds.Network) bool {
	for _, n := range known {
		if !slices.Contains(wanted, n.Name) && !slices.Contains(wanted, n.ID) {
			continue
		}
		route := routes(n.Name, known, hints)
		led := slices.ContainsFunc(outside, func(id string) bool { return slices.Contains(t.routes[n.ID], id) })
		if n.Shared || led || !t.private[n.ID] || route.ipv4 != nil && *route.ipv4 {
			return false
		}
	}
	return true
}

// inside are those of a server's networks to which a floating IP can lead; none if the server may have a public address
// without one, or if its networks are not known. Without networks it gets the only one that the project has.
func (t paths) inside(attached []servers.Network, known []network, hints []clouds.Network) []string {
	if len(attached) == 0 {
		for _, shared := range []bool{false, true} { // as Nova chooses
			for _, n := range known {
				if !n.External && n.Shared == shared {
					attached = append(attached, servers.Network{UUID: n.ID})
				}
			}
			if len(attached) > 0 {
				break
			}
		}
		if len(attached) > 1 {
			return nil
		}
	}
	var found []string
	for _, a := range attached {
		i := slices.IndexFunc(known, func(n network) bool { return n.ID == a.UUID })
		if i < 0 {
			return nil
		}
		switch public := routes(known[i].Name, known, hints).ipv4; {
		case public != nil && *public || public == nil && t.public[a.UUID]:
			return nil
		case t.private[a.UUID] || t.public[a.UUID]:
			found = append(found, a.UUID)
		}
	}
	return found
}

// choose picks the network that gets a floating IP, and the external network that it comes from:
// first those that a router connects, then one with a gateway. Both lists are in order of
// preference.
func (t paths) choose(inside, outside []string) (destination, source string) {
	best := -1
	for _, in := range inside {
		rank, out := 0, outside[0]
		for _, candidate := range outside {
			if slices.Contains(t.routes[in], candidate) {
				rank, out = 2, candidate
				break
			}
		}
		if t.gateways[in] {
			rank++
		}
		if rank > best {
			best, destination, source = rank, in, out
		}
	}
	return destination, source
}

// natPath finds the network that gets a floating IP, one of those in inside, and the external
// network that it comes from, one of those in outside. Neither list is empty.
func (p *Provider) natPath(ctx context.Context, in *session, inside, outside []string) (destination, source string, err error) {
	known, err := p.networks.get(ctx, p.now, p.listNetworks)
	if err != nil {
		return "", "", err
	}
	inside = natDestinations(inside, known, in.cloud.Networks)
	if len(inside) == 1 && len(outside) == 1 {
		return inside[0], outside[0], nil
	}
	found, err := p.paths.get(ctx, p.now, p.listPaths)
	if err != nil {
		return "", "", err
	}
	destination, source = found.choose(inside, outside)
	return destination, source, nil
}

// errNoOutside: no network can give floating IPs.
var errNoOutside = fmt.Errorf("%w: the cloud has no external network", providers.ErrInvalid)

// natSources are the networks that floating IPs can come from: the nat_source of clouds.yaml, else
// all external ones.
//
// Errors: errNoOutside, or providers.ErrInvalid for a nat_source that is no network, or several.
func natSources(known []network, hints []clouds.Network) ([]string, error) {
	named := slices.IndexFunc(hints, func(h clouds.Network) bool { return h.NATSource })
	var found []string
	for _, n := range known {
		if named < 0 && n.External || named >= 0 && hints[named].Is(n.ID, n.Name) {
			found = append(found, n.ID)
		}
	}
	if named >= 0 && len(found) != 1 {
		return nil, fmt.Errorf("%w: clouds.yaml: nat_source: the cloud has %d networks %q", providers.ErrInvalid, len(found), hints[named].Name)
	}
	if len(found) == 0 {
		return nil, errNoOutside
	}
	return found, nil
}

// natDestinations are the networks of a server to which a floating IP can lead: the nat_destination
// of clouds.yaml if the server is on it, else all.
func natDestinations(inside []string, known []network, hints []clouds.Network) []string {
	for _, h := range hints {
		for _, n := range known {
			if h.NATDestination && h.Is(n.ID, n.Name) && slices.Contains(inside, n.ID) {
				return []string{n.ID}
			}
		}
	}
	return inside
}

// networkOrder lists the names of the networks of a server's label, as the pool orders them.
func (p *Provider) networkOrder(s *server, known []network) []string {
	pool, ok := p.cfg.Pool(s.Metadata[providers.MetaPool])
	if !ok {
		return nil
	}
	wanted := pool.Networks
	groups := s.Metadata[metaGroups]
	if label, ok := pool.Label(groups[strings.LastIndexByte(groups, ',')+1:]); ok {
		wanted = label.Networks
	}
	var names []string
	for _, name := range wanted {
		if i := slices.IndexFunc(known, func(n network) bool { return n.ID == name }); i >= 0 {
			name = known[i].Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// attachments turns a label's networks, names or ids, into ids.
func (p *Provider) attachments(ctx context.Context, o offer) ([]servers.Network, error) {
	if len(o.label.Networks) == 0 {
		return nil, nil
	}
	return seek(ctx, &p.networks, p.now, p.listNetworks, func(all []network) ([]servers.Network, error) {
		var attached []servers.Network
		for _, name := range o.label.Networks {
			id, err := networkID(o, name, all)
			if err != nil {
				return nil, err
			}
			attached = append(attached, servers.Network{UUID: id})
		}
		return attached, nil
	})
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
