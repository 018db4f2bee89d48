package launcher_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// A tenant's limit holds over all providers and launchers, and holds up no other
// tenant.
func TestTenantLimitsHoldEverywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(threeClouds, "labels: [", "tenant-resource-limits: [{tenant-name: greedy, max-servers: 2}]\nlabels: [", 1))
	s.image()
	var mu sync.Mutex
	most := 0
	count := func() error {
		nodes, err := s.store.Nodes(context.WithoutCancel(t.Context()))
		if err != nil {
			return err
		}
		greedy := 0
		for _, n := range nodes {
			if n.TenantName == "greedy" {
				greedy++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		most = max(most, greedy)
		return nil
	}
	for _, cloud := range s.clouds {
		cloud.SetHook(func(_ context.Context, c fake.Call) error {
			if c.Op == fake.OpCreate && c.Done {
				return count()
			}
			return nil
		})
	}
	for range 2 {
		s.launch()
	}
	zktest.Eventually(t, func() bool { return len(s.pools()) == 8 }, "all registered")
	never := s.submit(zuul.Wish{Labels: []string{"small", "small", "small"}, Tenant: "greedy", Fresh: true})
	var jobs sync.WaitGroup
	for i := range 24 {
		jobs.Go(func() {
			w := wish("small")
			if w.Tenant = "greedy"; i%3 == 0 {
				w.Tenant = "modest"
			}
			if err := s.zuul.Run(t.Context(), w, nil); err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	if most > 2 || most == 0 {
		t.Errorf("the tenant had %d nodes, limit 2", most)
	}
	if r, err := s.store.Request(t.Context(), never); err != nil || r.State != "requested" {
		t.Errorf("%+v (%v), want it to wait, as it does in Nodepool", r, err)
	}
}
