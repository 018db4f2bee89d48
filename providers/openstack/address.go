package openstack

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"poolkeeper/providers/openstack/clouds"
)

// reach is how a server can be reached.
type reach struct {
	public4, public6 string
	private4         string
	fixed            address // the one that a floating IP would lead to
}

// reachOf sorts a server's addresses. Networks come in the order of their
// names, so that the choice does not change from one look to the next.
func reachOf(s *server, known []network, hints []clouds.Network) reach {
	var r reach
	for _, name := range slices.Sorted(maps.Keys(s.Addresses)) {
		for _, a := range s.Addresses[name] {
			r.add(a, routes(name, known, hints))
		}
	}
	return r
}

func (r *reach) add(a address, route route) {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil {
		return
	}
	floating := a.Type == "floating"
	public := floating || route.public(ip)
	switch {
	case ip.Is6() && public && r.public6 == "":
		r.public6 = a.IP
	case ip.Is6():
	case floating:
		r.public4 = a.IP // what is made to be reached comes first
	case public && r.public4 == "":
		r.public4 = a.IP
	case !public && r.private4 == "":
		r.private4, r.fixed = a.IP, a
	}
}

// interfaceIP is the address that Zuul connects to.
func (r reach) interfaceIP(cloud clouds.Cloud, ipv6 bool) string {
	switch {
	case cloud.Private && r.private4 != "":
		return r.private4
	case r.public6 != "" && ipv6 && !cloud.ForceIPv4:
		return r.public6
	case r.public4 != "":
		return r.public4
	case r.private4 != "":
		return r.private4
	}
	return r.public6
}

// route says whether a network leads to the outside; nil when nobody says.
type route struct{ ipv4, ipv6 *bool }

// routes finds out what is known of a network: from clouds.yaml, else from
// Neutron.
func routes(name string, known []network, hints []clouds.Network) route {
	var r route
	var id string
	for _, n := range known {
		if n.Name == name {
			id = n.ID
			if yes := n.External || n.Physical != ""; yes {
				r.ipv4, r.ipv6 = &yes, &yes
			}
		}
	}
	for _, h := range hints {
		if h.Name == name || id != "" && h.Name == id {
			r.ipv4 = cmp.Or(h.RoutesIPv4, h.RoutesExternally, r.ipv4)
			r.ipv6 = cmp.Or(h.RoutesIPv6, h.RoutesExternally, r.ipv6)
		}
	}
	return r
}

// public reports whether an address can be reached from outside. Where nobody
// says, an address that is not of a private range is taken to be one.
func (r route) public(ip netip.Addr) bool {
	say := r.ipv4
	if ip.Is6() {
		say = r.ipv6
	}
	if say != nil {
		return *say
	}
	return isPublic(ip)
}

// shared is the range of carriers' own networks (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}
