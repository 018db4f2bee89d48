package launcher_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zuul"
)

// zonedCloud is a cloud whose zone "full" has room for one machine.
type zonedCloud struct {
	keepOpen

	mu      sync.Mutex
	inFull  int
	refused []time.Time
}

func (c *zonedCloud) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.AZ == "full" {
		if c.inFull++; c.inFull > 1 {
			c.refused = append(c.refused, time.Now())
			return "", fmt.Errorf("create node %s: %w: No valid host was found", spec.NodeID, providers.ErrCapacity)
		}
	}
	return c.keepOpen.CreateNode(ctx, spec)
}

func (c *zonedCloud) refusals() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.refused)
}

// One of three availability zones is full, and no request fails or waits for it. Mistakes: all attempts of a request go to
// one zone; the whole cloud counts as full; the next request goes to the full zone; nodes of a request are in two zones.
func TestAZoneThatIsFullIsAvoided(t *testing.T) {
	t.Parallel()
	yaml := strings.Replace(onePool, "    cloud: fake\n", "    cloud: fake\n    fake: {max-instances: 60}\n", 1)
	s := newSite(t, strings.Replace(yaml, "max-servers: 5", "max-servers: 40\n        availability-zones: [open, full, wide]", 1))
	s.image()
	cloud := &zonedCloud{keepOpen: keepOpen{s.clouds["cloud"]}}
	s.launch(func(d *launcher.Deps) {
		d.Open = func(configs.Provider) (providers.Provider, error) { return cloud, nil }
	})
	served := func(id string) {
		zones := map[string]bool{}
		for _, node := range s.mustBeServed(id) {
			zones[s.node(node).AZ] = true
		}
		if len(zones) != 1 {
			t.Errorf("nodes of request %s are in %v", id, zones)
		}
	}
	for n := 0; len(cloud.refusals()) == 0 && n < 20; n++ {
		served(s.submit(zuul.Wish{Labels: []string{"small", "large"}}))
	}
	first := cloud.refusals()
	var ids []string
	for n := range 8 {
		w := zuul.Wish{Labels: []string{"small"}}
		if n%2 == 0 {
			w.Labels = append(w.Labels, "large")
		}
		ids = append(ids, s.submit(w))
	}
	for _, id := range ids {
		served(id)
	}
	if len(first) == 0 || len(first) > 2 {
		t.Fatalf("the full zone refused %d machines of the first requests", len(first))
	}
	for _, at := range cloud.refusals()[len(first):] {
		if after := at.Sub(first[0]); after < 5*time.Second {
			t.Errorf("another machine was asked for in the full zone after %s", after)
		}
	}
}
