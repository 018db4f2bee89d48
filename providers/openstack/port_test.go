package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// routedStub is a stub whose network of servers is private: only floating IPs lead to it.
func routedStub(t *testing.T) *stub {
	t.Helper()
	s := newStub(t)
	s.networks = append(s.networks, map[string]any{"id": netOutside, "name": "outside", "router:external": true})
	s.subnets = []map[string]any{{"id": "inside", "network_id": netPublic, "ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1"}}
	s.mux.HandleFunc("GET /network/v2.0/security-groups", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"security_groups": []map[string]any{{"id": "id-of-default", "name": "default"}, {"id": "id-of-ssh", "name": "ssh"}}})
	})
	return s
}

// launchable is a node of an installation.
func launchable(image string) providers.NodeSpec {
	spec := nodeSpec(image)
	spec.Metadata[providers.MetaSite], spec.Metadata[providers.MetaLaunch] = "site", "launch-1"
	return spec
}

// things counts what the stub has.
func (s *stub) things() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	loose := 0
	for _, ip := range s.ips {
		if s.ports[ip.Port] == nil {
			loose++
		}
	}
	return fmt.Sprintf("%d servers, %d ports, %d floating IPs, %d of them without a port", len(s.servers), len(s.ports), len(s.ips), loose)
}

const nothing = "0 servers, 0 ports, 0 floating IPs, 0 of them without a port"

// A server that only a floating IP makes reachable is created with a port that has one; all three are deleted in order.
func TestPortComesBeforeItsServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*stub, *configs.Provider)
		clouds   string
		networks string // that Nova is asked for, by the stub's names
		groups   any    // of the port
	}{
		"one network":     {networks: "port"},
		"security groups": {change: func(_ *stub, cfg *configs.Provider) { cfg.Pools[0].SecurityGroups = []string{"id-of-default", "ssh"} }, networks: "port", groups: []any{"id-of-default", "id-of-ssh"}},
		"volume and zone": {change: func(_ *stub, cfg *configs.Provider) {
			cfg.Pools[0].AvailabilityZones = []string{"az7"}
			cfg.Pools[0].Labels[0].BootFromVolume, cfg.Pools[0].Labels[0].VolumeSize = true, 5
		}, networks: "port"},
		"the only network": {change: func(_ *stub, cfg *configs.Provider) { cfg.Pools[0].Labels[0].Networks = nil }, networks: "port"},
		"two networks": {change: func(s *stub, cfg *configs.Provider) {
			s.networks = append(s.networks, map[string]any{"id": netPrivate, "name": "second"})
			s.subnets = append(s.subnets, map[string]any{"id": "second", "network_id": netPrivate, "ip_version": 4, "cidr": "10.1.0.0/24", "gateway_ip": nil})
			cfg.Pools[0].Labels[0].Networks = []string{"second", "public"}
		}, networks: netPrivate + " port"},
		"nat_destination": {change: func(s *stub, cfg *configs.Provider) {
			s.networks = append(s.networks, map[string]any{"id": netPrivate, "name": "second"})
			s.subnets = append(s.subnets, map[string]any{"id": "second", "network_id": netPrivate, "ip_version": 4, "cidr": "10.1.0.0/24", "gateway_ip": nil})
			cfg.Pools[0].Labels[0].Networks = []string{"second", "public"}
		}, clouds: "    networks: [{name: second, nat_destination: true}]", networks: "port " + netPublic},
		"a public network":  {change: func(s *stub, _ *configs.Provider) { s.subnets[0]["cidr"] = "198.51.100.0/24" }, networks: netPublic},
		"routes_externally": {clouds: "    networks: [{name: public, routes_externally: true}]", networks: netPublic},
		"the pool":          {change: func(_ *stub, cfg *configs.Provider) { cfg.Pools[0].AutoFloatingIP = false }, networks: netPublic},
		"private":           {clouds: "    private: true", networks: netPublic},
		"no source":         {clouds: "    floating_ip_source: None", networks: netPublic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := routedStub(t)
			cfg := section()
			if c.change != nil {
				c.change(s, &cfg)
			}
			p := s.openWith(t, cfg, s.clouds(t, c.clouds))
			id, err := p.CreateNode(t.Context(), launchable(upload(t, p)))
			if err != nil {
				t.Fatal(err)
			}
			var networks []string
			for _, one := range s.servers[id].order["networks"].([]any) {
				for key, value := range one.(map[string]any) {
					if key == "port" {
						port := s.ports[value.(string)]
						if port["description"] != "poolkeeper provider north, node 0000000007, site site, launch launch-1" || !cmp.Equal(port["security_groups"], c.groups) {
							t.Errorf("the port is %v", port)
						}
						value = key
					}
					networks = append(networks, value.(string))
				}
			}
			if got := strings.Join(networks, " "); got != c.networks {
				t.Errorf("Nova was asked for the networks %s, want %s", got, c.networks)
			}
			before := len(s.ips)
			if i, err := p.WaitNode(t.Context(), id); err != nil || strings.Contains(c.networks, "port") && (before != 1 || i.InterfaceIP != "203.0.113.9") {
				t.Errorf("with %d floating IPs before WaitNode it gave %+v, %v", before, i, err)
			}
			if nodes, err := p.ListNodes(t.Context()); err != nil || len(nodes) != 1 {
				t.Errorf("ListNodes gave %+v, %v", nodes, err)
			}
			if err := p.DeleteNode(t.Context(), id); err != nil || s.things() != nothing {
				t.Errorf("DeleteNode: %v, left: %s", err, s.things())
			}
			var deleted []string
			for _, call := range s.calls {
				if what, ok := strings.CutPrefix(call, "DELETE "); ok {
					deleted = append(deleted, strings.Split(what, "/")[3])
				}
			}
			if got := strings.Join(deleted, " "); before == 1 && got != "servers floatingips ports" {
				t.Errorf("deleted in the order %s", got)
			}
		})
	}
}

// Neutron has no floating IP left: no server is created for nothing, and the refusal is one of capacity.
func TestNoServerWithoutAFloatingIP(t *testing.T) {
	t.Parallel()
	details := func(s *stub, used int) {
		s.mux.HandleFunc("GET /network/v2.0/quotas/project/details.json", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, map[string]any{"quota": map[string]any{"floatingip": map[string]any{"limit": 5, "used": used, "reserved": 0}}})
		})
	}
	available := func(s *stub, used int) {
		s.mux.HandleFunc("GET /network/v2.0/network-ip-availabilities/"+netOutside, func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, map[string]any{"network_ip_availability": map[string]any{"network_id": netOutside, "total_ips": 9, "used_ips": used}})
		})
	}
	denied := func(s *stub) { s.fail("POST /network/v2.0/ports", 100, answer(http.StatusForbidden)) }
	for name, c := range map[string]struct {
		prepare func(*stub)
		servers int // that Nova was asked for
		cause   string
	}{
		"the pool is exhausted":             {func(s *stub) { s.free = 0 }, 0, "Unable to find any IP address"},
		"no port, and the quota is used up": {func(s *stub) { denied(s); details(s, 5) }, 0, "uses 5 of 5 floating IPs"},
		"no port, and no address is free":   {func(s *stub) { denied(s); details(s, 1); available(s, 9) }, 0, "uses 9 of 9 addresses"},
		"no port, and some are free":        {func(s *stub) { denied(s); details(s, 1); available(s, 5) }, 1, ""},
		"no port, and nothing can be read":  {denied, 1, ""},
		"the quota of ports is used up": {func(s *stub) {
			s.fail("POST /network/v2.0/ports", 100, answerHTML(409, "Quota exceeded for resources: ['port']."))
		}, 0, "Quota exceeded"},
		"the network has no address": {func(s *stub) {
			s.fail("POST /network/v2.0/ports", 100, answerHTML(409, "No more IP addresses available on network x."))
		}, 0, "No more IP addresses"},
		"the port gets no address before": {func(s *stub) { s.deferred = true }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := routedStub(t)
			c.prepare(s)
			p := s.open(t, section())
			_, err := p.CreateNode(t.Context(), launchable(upload(t, p)))
			if got := s.count("POST /compute/v2.1/servers"); got != c.servers {
				t.Errorf("Nova was asked for %d servers, want %d: %v", got, c.servers, err)
			}
			if c.servers > 0 {
				if err != nil || len(s.ports) != 0 {
					t.Errorf("CreateNode: %v, %s", err, s.things())
				}
				return
			}
			if !errors.Is(err, providers.ErrQuota) || !strings.Contains(err.Error(), c.cause) || !strings.Contains(err.Error(), "north") || s.things() != nothing {
				t.Errorf("CreateNode: %v, left: %s", err, s.things())
			}
		})
	}
}

// A launcher is killed behind any call that changes the cloud. The next one launches one server, with one port and one
// floating IP; or, if the record is gone, the search for leaks deletes everything. No floating IP is ever without a port.
func TestKilledBetweenPortAndServer(t *testing.T) {
	t.Parallel()
	life := func(t *testing.T, p *Provider, image string) {
		t.Helper()
		if id, err := p.CreateNode(t.Context(), launchable(image)); err == nil {
			_ = p.DeleteNode(t.Context(), id) // or the kill is before
		}
	}
	for kill := 1; kill <= 6; kill++ {
		for _, goesOn := range []bool{true, false} {
			t.Run(fmt.Sprintf("call %d, the launch continues: %t", kill, goesOn), func(t *testing.T) {
				t.Parallel()
				s := routedStub(t)
				image := upload(t, s.open(t, section()))
				killed := s.open(t, section())
				killed.pace.total, killed.pace.patience = 20*time.Millisecond, 20*time.Millisecond
				calls := 0
				s.fail("", 1<<30, func(w http.ResponseWriter, r *http.Request) bool {
					s.mu.Lock()
					dead := calls >= kill
					if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/tokens") {
						calls++
					}
					s.mu.Unlock()
					if dead {
						panic(http.ErrAbortHandler)
					}
					return false
				})
				life(t, killed, image)
				s.calm()
				if calls < kill {
					t.Fatalf("%d calls change the cloud", calls)
				}
				next := s.open(t, section())
				if goesOn {
					id, err := next.CreateNode(t.Context(), launchable(image))
					if err != nil || s.things() != "1 servers, 1 ports, 1 floating IPs, 0 of them without a port" {
						t.Errorf("CreateNode: %v, the cloud has %s", err, s.things())
					}
					if err := next.DeleteNode(t.Context(), id); err != nil {
						t.Error(err)
					}
				}
				nodes, err := next.ListNodes(t.Context())
				if err != nil || !strings.HasSuffix(s.things(), ", 0 of them without a port") {
					t.Fatalf("ListNodes: %v, the cloud has %s", err, s.things())
				}
				for _, n := range nodes {
					if !providers.OfSite(n.Metadata, "north", "site") || n.Metadata[providers.MetaNode] != "0000000007" || n.Metadata[providers.MetaLaunch] != "launch-1" {
						t.Errorf("the search for leaks does not know the owner of %+v", n)
					}
					if err := next.DeleteNode(t.Context(), n.ExternalID); err != nil {
						t.Error(err)
					}
				}
				if s.things() != nothing {
					t.Errorf("left: %s", s.things())
				}
			})
		}
	}
}

// Neutron does not answer: the list of servers is not complete, and what it lacks is not missing.
func TestPortsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	s := routedStub(t)
	p := s.open(t, section())
	if _, err := p.CreateNode(t.Context(), launchable(upload(t, p))); err != nil {
		t.Fatal(err)
	}
	p.pace.total = 20 * time.Millisecond
	s.fail("GET /network/v2.0/ports", 1000, answer(http.StatusServiceUnavailable))
	nodes, err := p.ListNodes(t.Context())
	if _, partial := errors.AsType[*providers.PartialError](err); !partial || len(nodes) != 1 {
		t.Errorf("ListNodes gave %+v, %v", nodes, err)
	}
	s.calm()
	s.fail("GET /network/v2.0/ports", 1000, answer(http.StatusForbidden))
	if nodes, err := p.ListNodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("where ports are not ours to list, ListNodes gave %+v, %v", nodes, err)
	}
}
