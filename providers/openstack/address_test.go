package openstack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
	"poolkeeper/providers/openstack/clouds"
)

func TestReach(t *testing.T) {
	yes, no := true, false
	known := []network{
		{ID: netPublic, Name: "provider", Physical: "physnet"},
		{ID: netOutside, Name: "outside", External: true},
		{ID: netPrivate, Name: "inside"},
	}
	const four, ten, six, local6 = "8.8.4.4", "10.0.0.4", "2001:4860::4", "fd00::4"
	for name, c := range map[string]struct {
		addresses map[string][]address
		cloud     clouds.Cloud
		ipv6      bool
		want      reach
		reachable string
	}{
		"fixed and public":          {addresses: map[string][]address{"any": {{IP: four}}}, want: reach{public4: four}, reachable: four},
		"fixed and private":         {addresses: map[string][]address{"any": {{IP: ten}}}, want: reach{private4: ten}, reachable: ten},
		"carrier's":                 {addresses: map[string][]address{"any": {{IP: "100.64.1.1"}}}, want: reach{private4: "100.64.1.1"}, reachable: "100.64.1.1"},
		"on a provider network":     {addresses: map[string][]address{"provider": {{IP: ten}}}, want: reach{public4: ten}, reachable: ten},
		"on an external network":    {addresses: map[string][]address{"outside": {{IP: ten}}}, want: reach{public4: ten}, reachable: ten},
		"floating beside fixed":     {addresses: map[string][]address{"inside": {{IP: ten}, {IP: four, Type: "floating"}}}, want: reach{public4: four, private4: ten}, reachable: four},
		"floating before fixed":     {addresses: map[string][]address{"a": {{IP: "9.9.9.9"}}, "b": {{IP: four, Type: "floating"}}}, want: reach{public4: four}, reachable: four},
		"both versions, no IPv6":    {addresses: map[string][]address{"any": {{IP: six}, {IP: four}}}, want: reach{public4: four, public6: six}, reachable: four},
		"both versions":             {addresses: map[string][]address{"any": {{IP: six}, {IP: four}}}, ipv6: true, want: reach{public4: four, public6: six}, reachable: six},
		"force_ipv4":                {addresses: map[string][]address{"any": {{IP: six}, {IP: four}}}, ipv6: true, cloud: clouds.Cloud{ForceIPv4: true}, want: reach{public4: four, public6: six}, reachable: four},
		"private":                   {addresses: map[string][]address{"any": {{IP: four}, {IP: ten}}}, cloud: clouds.Cloud{Private: true}, want: reach{public4: four, private4: ten}, reachable: ten},
		"IPv6 alone":                {addresses: map[string][]address{"any": {{IP: six}}}, want: reach{public6: six}, reachable: six},
		"unique local IPv6":         {addresses: map[string][]address{"any": {{IP: local6}}}, want: reach{private6: local6}, reachable: local6},
		"said to be internal":       {addresses: map[string][]address{"provider": {{IP: four}}}, cloud: clouds.Cloud{Networks: []clouds.Network{{Name: "provider", RoutesExternally: &no}}}, want: reach{private4: four}, reachable: four},
		"said to be external, id":   {addresses: map[string][]address{"inside": {{IP: ten}}}, cloud: clouds.Cloud{Networks: []clouds.Network{{Name: netPrivate, RoutesExternally: &yes}}}, want: reach{public4: ten}, reachable: ten},
		"said to be external, IPv4": {addresses: map[string][]address{"inside": {{IP: ten}, {IP: local6}}}, cloud: clouds.Cloud{Networks: []clouds.Network{{Name: "inside", RoutesExternally: &no, RoutesIPv4: &yes}}}, want: reach{public4: ten, private6: local6}, reachable: ten},
		"external before floating":  {addresses: map[string][]address{"inside": {{IP: ten}, {IP: four, Type: "floating"}}, "outside": {{IP: "9.9.9.9"}}}, want: reach{public4: "9.9.9.9", private4: ten}, reachable: "9.9.9.9"},
		"default, both versions":    {addresses: map[string][]address{"inside": {{IP: ten}, {IP: local6}}, "outside": {{IP: four}}}, ipv6: true, cloud: clouds.Cloud{Private: true, Networks: []clouds.Network{{Name: netPrivate, DefaultInterface: true}}}, want: reach{public4: four, private4: ten, private6: local6, default4: ten, default6: local6}, reachable: local6},
		"nonsense":                  {addresses: map[string][]address{"any": {{IP: "fake"}}}},
	} {
		got := reachOf(&server{Addresses: c.addresses}, nil, known, c.cloud.Networks)
		got.fixed = nil
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(reach{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if ip := got.interfaceIP(c.cloud, c.ipv6); ip != c.reachable {
			t.Errorf("%s: reached at %q, want %q", name, ip, c.reachable)
		}
	}
}

// inside gives the stub's servers a private address, a port, and a network for
// floating IPs.
func (s *stub) inside(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[id].fields["addresses"] = map[string]any{"inside": []map[string]any{
		{"addr": "10.0.0.7", "version": 4, "OS-EXT-IPS:type": "fixed"},
	}}
	s.ports["port-1"] = map[string]any{
		"id": "port-1", "device_id": id, "status": "ACTIVE", "device_owner": "compute:az1",
		"fixed_ips": []map[string]any{{"ip_address": "10.0.0.7", "subnet_id": "subnet"}},
	}
	s.networks = append(s.networks, map[string]any{"id": netOutside, "name": "outside", "router:external": true})
}

func TestFloatingIP(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	spec := nodeSpec(upload(t, p))
	spec.Metadata[providers.MetaSite] = "site"
	id, err := p.CreateNode(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.inside(id)
	p.networks.forget()
	for range 2 { // a launcher that restarts finds the first one
		i, err := p.WaitNode(t.Context(), id)
		if err != nil || i.InterfaceIP != "203.0.113.9" || i.PublicIPv4 != "203.0.113.9" || i.PrivateIPv4 != "10.0.0.7" {
			t.Fatalf("WaitNode gave %+v, %v", i, err)
		}
	}
	if len(s.ips) != 1 {
		t.Fatalf("%d floating IPs, want 1", len(s.ips))
	}
	for _, ip := range s.ips {
		if ip.Port != "port-1" || ip.Network != netOutside || ip.Description != "poolkeeper provider north, node 0000000007, site site" {
			t.Errorf("made %+v", ip)
		}
	}
	if err := p.DeleteNode(t.Context(), id); err != nil || len(s.ips) != 0 {
		t.Errorf("DeleteNode: %v, %d floating IPs are left", err, len(s.ips))
	}
}

// Nobody gets a floating IP that the pool, the cloud or the address say is not
// needed.
func TestNoFloatingIP(t *testing.T) {
	for name, c := range map[string]struct {
		pool  bool
		cloud string
	}{
		"the pool":  {pool: false},
		"the cloud": {pool: true, cloud: "    floating_ip_source: None"},
		"private":   {pool: true, cloud: "    private: true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			cfg := section()
			cfg.Pools[0].AutoFloatingIP = c.pool
			p := s.openWith(t, cfg, s.clouds(t, c.cloud))
			id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
			if err != nil {
				t.Fatal(err)
			}
			s.inside(id)
			i, err := p.WaitNode(t.Context(), id)
			if err != nil || i.InterfaceIP != "10.0.0.7" || len(s.ips) != 0 {
				t.Errorf("WaitNode gave %+v, %v, with %d floating IPs", i, err, len(s.ips))
			}
		})
	}
}

// A node whose floating IP cannot be had says why.
func TestFloatingIPQuota(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	s.inside(id)
	p.networks.forget()
	s.fail("POST /network/v2.0/floatingips", 1, answerHTML(409, "Quota exceeded for resources: ['floatingip']."))
	if _, err := p.WaitNode(t.Context(), id); !errors.Is(err, providers.ErrQuota) || !strings.Contains(err.Error(), "floating IP") {
		t.Errorf("WaitNode gave %v", err)
	}
}

// Where Neutron gives no floating IP the reason names the pool's key that wants one,
// and Neutron's words. A router that is added later mends it.
func TestFloatingIPWithoutARouter(t *testing.T) {
	for name, c := range map[string]struct {
		match string
		fault func(http.ResponseWriter, *http.Request) bool
		kind  error
		says  string
	}{
		"no router":        {kind: providers.ErrInvalid, says: "needs a router"},
		"no layer 3":       {"GET /network/v2.0/floatingips", answerHTML(404, "The resource could not be found."), providers.ErrInvalid, "could not be found"},
		"refused":          {"POST /network/v2.0/floatingips", answerHTML(403, "disallowed by policy"), providers.ErrInvalid, "disallowed by policy"},
		"no room":          {"POST /network/v2.0/floatingips", answerHTML(409, "Quota exceeded for resources: ['floatingip']."), providers.ErrQuota, "Quota exceeded"},
		"no address left":  {"POST /network/v2.0/floatingips", answerHTML(409, "No more IP addresses available on network outside."), providers.ErrQuota, "No more IP"},
		"Neutron is away":  {"POST /network/v2.0/floatingips", answer(503), providers.ErrTransient, "injected"},
		"ports are hidden": {"GET /network/v2.0/ports", answer(403), providers.ErrInvalid, "injected"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			p := s.open(t, section())
			p.pace.total = p.pace.first
			id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
			if err != nil {
				t.Fatal(err)
			}
			s.inside(id)
			p.networks.forget()
			s.mu.Lock()
			s.unrouted = c.fault == nil
			s.mu.Unlock()
			if c.fault != nil {
				s.fail(c.match, 1000, c.fault)
			}
			_, err = p.WaitNode(t.Context(), id)
			for _, word := range []string{"provider north, pool main: auto-floating-ip: ", c.says} {
				if !errors.Is(err, c.kind) || errors.Is(err, providers.ErrNotFound) || !strings.Contains(err.Error(), word) {
					t.Errorf("WaitNode gave %v, want %v with %q", err, c.kind, word)
				}
			}
			s.calm()
			s.mu.Lock()
			s.unrouted = false
			s.mu.Unlock()
			if i, err := p.WaitNode(t.Context(), id); err != nil || i.PublicIPv4 != "203.0.113.9" {
				t.Errorf("when it is mended, WaitNode gave %+v, %v", i, err)
			}
			if err := p.DeleteNode(t.Context(), id); err != nil || len(s.ips) != 0 {
				t.Errorf("DeleteNode: %v, %d floating IPs are left", err, len(s.ips))
			}
		})
	}
}

// A server that failed says why, and whether it was for lack of room.
func TestFailedServer(t *testing.T) {
	for message, want := range map[string]error{
		"Binding failed for port 5d.":                     providers.ErrNodeFailed,
		"Build of instance aborted: exceeds ports quota.": providers.ErrQuota,
		"": providers.ErrNodeFailed,
	} {
		s := newStub(t)
		p := s.open(t, section())
		v := s.addServer(map[string]any{"name": "np", "metadata": map[string]any{}})
		v.fields["status"] = statusError
		if message != "" {
			v.fields["fault"] = map[string]any{"code": 500, "message": message}
		}
		_, err := p.WaitNode(t.Context(), v.fields["id"].(string))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), message) || errors.Is(err, context.Canceled) {
			t.Errorf("WaitNode gave %v, want %v with %q", err, want, message)
		}
	}
}
