package openstack

import (
	"strconv"
	"strings"
	"testing"

	"poolkeeper/providers"
)

// site is a cloud whose servers have a port on several networks.
type site struct {
	external []string          // in Neutron's order; their names are their ids' last part
	gateways []string          // internal networks with a gateway
	routers  map[string]string // internal network to external network
}

// on is a network that a server is on, with its addresses.
type on struct {
	network string
	ips     []string
}

// idOf makes an id of a short name.
func idOf(name string) string {
	return "22222222-0000-4000-8000-" + strings.Repeat("0", 12-len(name)) + hexOf(name)
}

func hexOf(name string) string {
	return strings.Map(func(r rune) rune { return rune("0123456789abcdef"[int(r)%16]) }, name)
}

// build fills the stub, and gives a server that runs.
func (s *stub) build(at site, ons []on, label string) string {
	v := s.addServer(map[string]any{"name": "np", "metadata": map[string]any{
		providers.MetaProvider: "north", providers.MetaPool: "main", providers.MetaNode: "7", metaGroups: "north,debian," + label,
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	id := v.fields["id"].(string)
	s.networks = nil
	for _, name := range at.external {
		s.networks = append(s.networks, map[string]any{"id": idOf(name), "name": name, "router:external": true})
	}
	addresses := map[string]any{}
	for i, o := range ons {
		s.networks = append(s.networks, map[string]any{"id": idOf(o.network), "name": o.network, "router:external": false})
		var list, fixed []map[string]any
		for _, ip := range o.ips {
			version := 4
			if strings.Contains(ip, ":") {
				version = 6
			}
			list = append(list, map[string]any{"addr": ip, "version": version, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": strconv.Itoa(i)})
			fixed = append(fixed, map[string]any{"ip_address": ip, "subnet_id": o.network})
		}
		addresses[o.network] = list
		s.ports["port-"+o.network] = map[string]any{
			"id": "port-" + o.network, "device_id": id, "status": "ACTIVE", "network_id": idOf(o.network), "fixed_ips": fixed,
		}
	}
	for i, name := range at.gateways {
		s.subnets = append(s.subnets, map[string]any{"id": "subnet-" + strconv.Itoa(i), "network_id": idOf(name), "ip_version": 4, "gateway_ip": "10.0.0.1"})
	}
	for inside, outside := range at.routers {
		router := "router-" + inside
		s.routers = append(s.routers, map[string]any{
			"id": router, "admin_state_up": true, "external_gateway_info": map[string]any{"network_id": idOf(outside)},
		})
		s.ports["port-of-"+router] = map[string]any{"id": "port-of-" + router, "device_id": router, "network_id": idOf(inside), "fixed_ips": []map[string]any{}}
	}
	v.fields["addresses"] = addresses
	return id
}

// A server on several networks is reached where the configuration, clouds.yaml and Neutron's
// routers say, and its floating IP leads to the port that they say.
func TestWhereAServerIsReached(t *testing.T) {
	const tens, twenties = "10.0.0.7", "10.2.0.7"
	two := []on{{"aa", []string{tens}}, {"bb", []string{twenties}}}
	const floats = "203.0.113.9"
	for name, c := range map[string]struct {
		at       site
		ons      []on
		pool     []string
		clouds   string
		port     string // that gets the floating IP
		outside  string // where that is from
		reached  string
		private4 string
	}{
		"router to the second": {
			at: site{external: []string{"ext1", "ext2"}, routers: map[string]string{"aa": "ext2"}}, ons: two[:1],
			port: "aa", outside: "ext2", reached: floats, private4: tens,
		},
		"router of the second network": {
			at: site{external: []string{"ext1", "ext2"}, routers: map[string]string{"bb": "ext2"}}, ons: two,
			port: "bb", outside: "ext2", reached: floats, private4: twenties,
		},
		"nat_source": {
			at: site{external: []string{"ext1", "ext2"}}, ons: two[:1],
			clouds: "    networks: [{name: ext2, nat_source: true}]", port: "aa", outside: "ext2", reached: floats, private4: tens,
		},
		"nat_destination": {
			at: site{external: []string{"ext1"}}, ons: two,
			clouds: "    networks: [{name: bb, nat_destination: true}]", port: "bb", outside: "ext1", reached: floats, private4: twenties,
		},
		"nat_destination by id": {
			at: site{external: []string{"ext1"}}, ons: two,
			clouds: "    networks: [{name: " + idOf("bb") + ", nat_destination: true}]", port: "bb", outside: "ext1", reached: floats, private4: twenties,
		},
		"internal_network": {
			at: site{external: []string{"ext1"}}, ons: two,
			clouds: "    internal_network: bb", port: "bb", outside: "ext1", reached: floats, private4: twenties,
		},
		"external_network": {
			ons: two, clouds: "    external_network: bb", reached: twenties, private4: tens,
		},
		"gateway": {
			at: site{external: []string{"ext1"}, gateways: []string{"bb"}}, ons: two,
			port: "bb", outside: "ext1", reached: floats, private4: twenties,
		},
		"order of the pool": {
			at: site{external: []string{"ext1"}}, ons: two, pool: []string{"bb", idOf("aa")},
			port: "bb", outside: "ext1", reached: floats, private4: twenties,
		},
		"order of the pool, without a floating IP": {
			ons: two, pool: []string{idOf("bb"), "aa"}, reached: twenties, private4: twenties,
		},
		"default_interface": {
			ons:    []on{{"aa", []string{"198.51.100.7"}}, {"bb", []string{twenties}}},
			clouds: "    networks: [{name: bb, default_interface: true}]", reached: twenties, private4: twenties,
		},
		"default_interface that is private to all": {
			at: site{external: []string{"ext1"}}, ons: two,
			clouds: "    networks: [{name: aa, nat_destination: true}, {name: bb, default_interface: true}]", port: "aa", outside: "ext1", reached: twenties, private4: tens,
		},
		"private IPv6 alone": {ons: []on{{"aa", []string{"fd00::7"}}}, reached: "fd00::7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			cfg := section()
			cfg.Pools[0].Labels[0].Networks = c.pool
			p := s.openWith(t, cfg, s.clouds(t, c.clouds))
			id := s.build(c.at, c.ons, "small")
			i, err := p.WaitNode(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if i.InterfaceIP != c.reached || i.PrivateIPv4 != c.private4 {
				t.Errorf("reached at %s, private %s, want %s and %s", i.InterfaceIP, i.PrivateIPv4, c.reached, c.private4)
			}
			var port, outside string
			for _, ip := range s.ips {
				port, outside = ip.Port, ip.Network
			}
			if c.port != "" && (port != "port-"+c.port || outside != idOf(c.outside)) || c.port == "" && len(s.ips) > 0 {
				t.Errorf("floating IP of network %s on port %s, want network %s and port %s", outside, port, idOf(c.outside), c.port)
			}
		})
	}
}
