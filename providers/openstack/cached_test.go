package openstack

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// A flavor, network or image that the cloud gets later is found at once, and the cloud is not asked
// again while it has all.
func TestWhatAppearsLaterIsFound(t *testing.T) {
	s := newStub(t)
	var mu sync.Mutex
	flavor := "other"
	s.fail("/flavors/detail", 1000, func(w http.ResponseWriter, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"flavors": []map[string]any{{"id": "9", "name": flavor, "ram": 1024, "vcpus": 1}}})
		return true
	})
	cfg := section()
	cfg.Pools[0].Labels[0].FlavorName, cfg.Pools[0].Labels[0].Networks = "new", []string{"new"}
	cfg.Pools[0].Labels[0].DiskImage, cfg.Pools[0].Labels[0].CloudImage = "", "new"
	cfg.CloudImages = []configs.CloudImage{{Name: "new", ImageName: "new"}}
	p := s.open(t, cfg)
	o, err := p.offer("main", "small")
	if err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func() error{
		"flavor":  func() error { _, err := p.flavor(t.Context(), o); return err },
		"network": func() error { _, err := p.attachments(t.Context(), o); return err },
		"image":   func() error { _, err := p.cloudImage(t.Context(), o); return err },
	} {
		if err := ask(); !errors.Is(err, providers.ErrInvalid) {
			t.Fatalf("%s that does not exist: %v", what, err)
		}
	}
	mu.Lock()
	flavor = "new"
	mu.Unlock()
	s.mu.Lock()
	s.networks = append(s.networks, map[string]any{"id": netPrivate, "name": "new"})
	s.images[netPrivate] = &stubImage{fields: map[string]any{"id": netPrivate, "name": "new", "status": "active", "created_at": "2026-01-01T00:00:00Z"}}
	s.mu.Unlock()
	for range 2 {
		_, flavor := p.flavor(t.Context(), o)
		_, network := p.attachments(t.Context(), o)
		_, image := p.cloudImage(t.Context(), o)
		if err := errors.Join(flavor, network, image); err != nil {
			t.Errorf("after they appeared: %v", err)
		}
	}
	if n := s.count("/networks"); n != 2 {
		t.Errorf("%d calls of /networks, want 2", n)
	}
}
