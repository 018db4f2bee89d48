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
	public4, public6   string
	private4, private6 string
	default4, default6 string    // on the network that clouds.yaml calls default_interface
	fixed              []address // private IPv4 addresses, to which a floating IP can lead
}

// reachOf sorts a server's addresses. Networks come in the given order of their names, others
// behind them sorted by name.
func reachOf(s *server, order []string, known []network, hints []clouds.Network) reach {
	var r reach
	rank, mac := unranked, ""
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Addresses)), func(name string) bool { return slices.Contains(order, name) })
	for _, name := range append(order, names...) {
		route := routes(name, known, hints)
		for _, a := range floatingFirst(s.Addresses[name]) {
			ip, err := netip.ParseAddr(a.IP)
			if err != nil {
				continue
			}
			if ip.Is6() {
				r.add6(a.IP, route, ip)
				continue
			}
			if route.preferred {
				r.default4 = cmp.Or(r.default4, a.IP)
			}
			if a.Type == typeFloating {
				mac = cmp.Or(mac, a.MAC)
			}
			if better := route.rank(a, ip); better < rank {
				rank, r.public4 = better, a.IP
			}
			if a.Type != typeFloating && !route.public(ip) {
				r.fixed = append(r.fixed, a)
			}
		}
	}
	r.private4 = private4(r.fixed, mac)
	return r
}

func (r *reach) add6(text string, route route, ip netip.Addr) {
	if route.preferred {
		r.default6 = cmp.Or(r.default6, text)
	}
	if route.public(ip) {
		r.public6 = cmp.Or(r.public6, text)
	} else {
		r.private6 = cmp.Or(r.private6, text)
	}
}

// private4 is the fixed address that a floating IP with the same MAC address leads to, else the first.
func private4(fixed []address, mac string) string {
	for _, a := range fixed {
		if mac != "" && a.MAC == mac {
			return a.IP
		}
	}
	if len(fixed) > 0 {
		return fixed[0].IP
	}
	return ""
}

// floatingFirst moves floating addresses to the front.
func floatingFirst(all []address) []address {
	var floating, fixed []address
	for _, a := range all {
		if a.Type == typeFloating {
			floating = append(floating, a)
		} else {
			fixed = append(fixed, a)
		}
	}
	return append(floating, fixed...)
}

// interfaceIP is the address that Zuul connects to, in openstacksdk's order; behind it
// come the addresses with which openstacksdk leaves a server unreachable.
func (r reach) interfaceIP(cloud clouds.Cloud, ipv6 bool) string {
	ipv6 = ipv6 && !cloud.ForceIPv4
	switch {
	case r.default6 != "" && ipv6:
		return r.default6
	case r.default4 != "":
		return r.default4
	case cloud.Private && r.private4 != "":
		return r.private4
	case r.public6 != "" && ipv6:
		return r.public6
	}
	return cmp.Or(r.public4, r.private4, r.public6, r.private6)
}

// route is what is known of how a network leads to the outside; nil is unknown.
type route struct {
	ipv4, ipv6 *bool
	preferred  bool // default_interface of clouds.yaml
}

// routes returns what is known of a network: from clouds.yaml, else from Neutron.
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
			r.preferred = r.preferred || h.DefaultInterface
		}
	}
	return r
}

// The order in which public IPv4 addresses are preferred.
const (
	onExternal = iota // on a network that is known to lead to the outside
	onFloating
	onPublicRange
	unranked
)

// rank is how much an IPv4 address is preferred as the public one.
func (r route) rank(a address, ip netip.Addr) int {
	switch {
	case r.ipv4 != nil && *r.ipv4:
		return onExternal
	case a.Type == typeFloating:
		return onFloating
	case r.public(ip):
		return onPublicRange
	}
	return unranked
}

// public reports whether an address can be reached from outside. If nothing is known, an
// address outside the private ranges is public.
func (r route) public(ip netip.Addr) bool {
	known := r.ipv4
	if ip.Is6() {
		known = r.ipv6
	}
	if known != nil {
		return *known
	}
	return isPublic(ip)
}

// shared is the range of carriers' own networks (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}
