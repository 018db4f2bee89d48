package openstack

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLeaks(t *testing.T) {
	s := newStub(t)
	cfg := section()
	p := s.open(t, cfg)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.now = func() time.Time { return now }
	server := s.addServer(map[string]any{"name": "np", "metadata": map[string]any{}}).fields["id"]
	for id, port := range map[string]map[string]any{
		"leaked":   {"status": "DOWN", "device_id": netPrivate, "device_owner": "compute:az1"},
		"unbound":  {"status": "DOWN", "device_id": netPrivate, "device_owner": ""},
		"booting":  {"status": "DOWN", "device_id": server, "device_owner": "compute:az1"},
		"router":   {"status": "DOWN", "device_id": netPrivate, "device_owner": "network:dhcp"},
		"made":     {"status": "DOWN", "device_id": "", "device_owner": ""},
		"active":   {"status": "ACTIVE", "device_id": netPrivate, "device_owner": "compute:az1"},
		"recovers": {"status": "DOWN", "device_id": netPrivate, "device_owner": "compute:az1"},
	} {
		port["id"] = id
		s.ports[id] = port
	}
	for id, ip := range map[string]stubIP{
		"ours":     {Description: "poolkeeper provider north, node 1, site site"},
		"used":     {Description: "poolkeeper provider north, node 1, site site", Port: "active"},
		"others":   {Description: "poolkeeper provider north2, node 1, site site"},
		"foreign":  {Description: "poolkeeper provider north, node 1, site another"},
		"older":    {Description: "poolkeeper provider north, node 1"},
		"somebody": {},
	} {
		ip.ID = id
		s.ips[id] = &ip
	}
	look := func(want map[string]int) {
		t.Helper()
		got, err := p.CleanLeaks(t.Context(), "site")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("CleanLeaks: %v (-want +got):\n%s", err, diff)
		}
	}
	look(map[string]int{})
	now = now.Add(30 * time.Second)
	look(map[string]int{}) // too soon
	s.ports["recovers"]["status"] = "ACTIVE"
	now = now.Add(40 * time.Second)
	look(map[string]int{"port": 2, "floatingip": 1})
	s.ports["recovers"]["status"] = "DOWN"
	look(map[string]int{}) // its time begins anew
	left := strings.Join(slices.Sorted(maps.Keys(s.ports)), " ") + ", " + strings.Join(slices.Sorted(maps.Keys(s.ips)), " ")
	if left != "active booting made recovers router, foreign older others somebody used" {
		t.Errorf("left are %s", left)
	}

	// The operator says that the project is ours alone.
	p.cfg.CleanFloatingIPs = true
	look(map[string]int{})
	now = now.Add(time.Minute)
	look(map[string]int{"port": 1, "floatingip": 3})
	if left := slices.Sorted(maps.Keys(s.ips)); !slices.Equal(left, []string{"foreign", "used"}) {
		t.Errorf("left are the floating IPs %v, want the one in use and the other site's", left)
	}
}

// A leak that cannot be deleted does not hide the others, and is tried again.
func TestLeakThatStays(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	now := time.Now()
	p.now = func() time.Time { return now }
	for _, id := range []string{"one", "two"} {
		s.ports[id] = map[string]any{"id": id, "status": "DOWN", "device_id": netPrivate}
	}
	if _, err := p.CleanLeaks(t.Context(), "site"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	s.fail("DELETE /network/v2.0/ports/one", 1, answer(409))
	got, err := p.CleanLeaks(t.Context(), "site")
	if got["port"] != 1 || err == nil || !strings.Contains(err.Error(), "port one") {
		t.Errorf("CleanLeaks gave %v, %v", got, err)
	}
	if got, err := p.CleanLeaks(t.Context(), "site"); got["port"] != 1 || err != nil {
		t.Errorf("CleanLeaks gave %v, %v", got, err)
	}
}
