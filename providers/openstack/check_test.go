package openstack

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// inventory adds to a stub what only CheckCloud asks for.
func (s *stub) inventory() {
	s.mux.HandleFunc("GET /compute/v2.1/os-keypairs", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"keypairs": []map[string]any{{"keypair": map[string]any{"name": "infra"}}}})
	})
	s.mux.HandleFunc("GET /network/v2.0/security-groups", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"security_groups": []map[string]any{{"id": netOutside, "name": "ssh"}}})
	})
	s.images[netPublic] = &stubImage{fields: map[string]any{"id": netPublic, "name": "Debian 13", "status": "active", "created_at": "2026-01-01T00:00:00Z"}}
}

// named is a section that names one of everything.
func named(flavor, network, key, group, zone, image, imageID string) configs.Provider {
	cfg := section()
	cfg.CloudImages = []configs.CloudImage{{Name: "by-name", ImageName: image}, {Name: "by-id", ImageID: imageID}}
	pool := &cfg.Pools[0]
	pool.AvailabilityZones, pool.SecurityGroups, pool.Networks = []string{zone}, []string{group}, []string{"public", network}
	pool.Labels = append(pool.Labels, configs.PoolLabel{
		Name: "large", CloudImage: "by-name", FlavorName: flavor, KeyName: key, Networks: pool.Networks,
	})
	return cfg
}

// All that the configuration names is asked for, and what is not there is told with the
// key that names it.
func TestCheckCloud(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.inventory()
	there := s.open(t, named("ci.large", netPublic, "infra", "ssh", "az1", "Debian 13", netPublic))
	if missing, err := there.CheckCloud(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("%+v, %v of a cloud that has all", missing, err)
	}
	gone := s.open(t, named("ci.huge", "storage", "mine", "web", "az9", "Debian 14", netOutside))
	missing, err := gone.CheckCloud(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range missing {
		got[m.Keys[0]] = m.Message
	}
	want := map[string]string{
		"pools[main].labels[large].flavor-name": `the cloud has no flavor "ci.huge", it has ci.small, gpu.small, ci.medium, ci.large`,
		"pools[main].labels[large].networks[1]": `the cloud has no network "storage", it has public`,
		"pools[main].labels[large].key-name":    `the cloud has no key pair "mine", it has infra`,
		"pools[main].security-groups[0]":        `the cloud has no security group "web", it has ssh`,
		"pools[main].availability-zones[0]":     `the cloud has no availability zone "az9" that takes nodes, it has az1`,
		"cloud-images[by-name].image-name":      `the cloud has no active image called "Debian 14"`,
		"cloud-images[by-id].image-id":          `the cloud has no image with the id "` + netOutside + `"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// A cloud that cannot be asked is told once, whatever else it would have been asked.
func TestCheckCloudThatIsDown(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	p := s.open(t, named("ci.large", netPublic, "infra", "ssh", "az1", "Debian 13", netPublic))
	s.Close()
	p.pace.total = 20 * 1e6
	_, err := p.CheckCloud(t.Context())
	if !errors.Is(err, providers.ErrTransient) || strings.Count(err.Error(), "connection refused") != 1 {
		t.Errorf("got %v", err)
	}
}

// What makes launches fail, or credentials readable, is found before.
func TestCheckCloudFindsTraps(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.inventory()
	s.networks = []map[string]any{
		{"id": netOutside, "name": "outside", "router:external": true}, {"id": netPrivate, "name": "inside"},
	}
	s.subnets = []map[string]any{{"id": "s", "network_id": netPrivate, "ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1"}}
	s.fail("GET /network/v2.0/security-groups", 1, func(w http.ResponseWriter, _ *http.Request) bool {
		reply(w, http.StatusOK, map[string]any{"security_groups": []map[string]any{{"id": netPublic, "name": "ssh"}, {"id": netPrivate, "name": "ssh"}}})
		return true
	})
	cfg := section()
	cfg.Pools[0].SecurityGroups = []string{"ssh"}
	label := &cfg.Pools[0].Labels[0]
	label.Networks, label.BootFromVolume = []string{"inside"}, true
	p := s.openWith(t, cfg, s.clouds(t, "    verify: false"))
	missing, err := p.CheckCloud(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range missing {
		got[m.Keys[0]], _, _ = strings.Cut(m.Message, ":")
	}
	want := map[string]string{
		"cloud": "clouds.yaml",
		"pools[main].labels[small].boot-from-volume": "the catalog of the cloud has no volume service",
		"pools[main].security-groups[0]":             `2 security groups are called "ssh", write the id of one`,
		"pools[main].auto-floating-ip":               "no router leads from the networks of the label to an external network, so that nodes get no floating IP",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	s.mu.Lock()
	s.routers = []map[string]any{{"id": "router", "admin_state_up": true, "external_gateway_info": map[string]any{"network_id": netOutside}}}
	s.ports["leg"] = map[string]any{"id": "leg", "device_id": "router", "network_id": netPrivate, "fixed_ips": []map[string]any{}}
	s.mu.Unlock()
	p.forget()
	missing, err = p.CheckCloud(t.Context())
	for _, m := range missing {
		if strings.Contains(m.Message, "router") {
			t.Errorf("with a router: %+v", m)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// Refused credentials and an untrusted certificate are named as such, and are not tried again soon.
func TestCausesOfAFailedLogin(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.fail("/auth/tokens", 1000, func(w http.ResponseWriter, _ *http.Request) bool {
		reply(w, http.StatusNotFound, map[string]any{"error": map[string]any{"code": 404, "message": "Could not find Application Credential: 4f."}})
		return true
	})
	p := s.open(t, section())
	tries := 0
	for range 3 {
		_, err := p.ListNodes(t.Context())
		if err == nil || !strings.Contains(err.Error(), "does not know the application credential") || strings.Contains(err.Error(), "identity service") {
			t.Errorf("an unknown application credential: %v", err)
		}
		tries++
	}
	s.mu.Lock()
	left := s.faults[0].times
	s.mu.Unlock()
	if asked := 1000 - left; asked != 1 {
		t.Errorf("%d log-ins of %d calls at once, want 1", asked, tries)
	}
}
