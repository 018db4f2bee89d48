package inflight

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// quotasOf makes the locks of some providers, and counts by name how often each was
// acquired.
func quotasOf(tenants bool, providers ...string) (Quotas, map[string][]*lock) {
	got := map[string][]*lock{}
	acquire := func(name string) func(context.Context) (Held, error) {
		return func(context.Context) (Held, error) {
			l := &lock{rival: make(chan struct{})}
			l.ctx, l.lose = context.WithCancel(context.Background())
			got[name] = append(got[name], l)
			return l, nil
		}
	}
	seen := func(context.Context) error { return nil }
	return NewQuotas(providers, tenants, acquire, seen, NewJobs(time.Now, func() {})), got
}

// Each provider has a lock of its own: with one for all, launchers of different clouds
// would take turns for nothing. Only those that are wanted are stood in line for.
func TestQuotasArePerProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, got := quotasOf(false, "north", "south")
		ctx, stop := context.WithCancel(t.Context())
		quotas.EndRound(ctx, map[string]bool{"south": true})
		synctest.Wait()
		if ours := quotas.Use(); ours["north"] || !ours["south"] || len(got) != 1 {
			t.Errorf("ours: %v, acquired: %v", ours, slices.Sorted(maps.Keys(got)))
		}
		close(got["south"][0].rival)
		synctest.Wait()
		quotas.EndRound(ctx, nil)
		synctest.Wait()
		if ours := quotas.Use(); ours["south"] || got["south"][0].released != 1 {
			t.Errorf("kept although another launcher stands in line: %v", ours)
		}
		stop()
	})
}

// Where tenants are limited, one lock is that of every provider: two would let two
// launchers each give a tenant its last node.
func TestTenantsAreCountedUnderOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, got := quotasOf(true, "north", "south")
		ctx, stop := context.WithCancel(t.Context())
		quotas.EndRound(ctx, map[string]bool{"north": true, "south": true})
		synctest.Wait()
		if ours := quotas.Use(); !ours["north"] || !ours["south"] || len(got) != 1 || len(got[AllProviders]) != 1 {
			t.Errorf("ours: %v, acquired: %v", ours, got)
		}
		quotas.End(ctx)
		if ours := quotas.Use(); ours["north"] || got[AllProviders][0].released != 1 {
			t.Errorf("at the end ours: %v, released %d times", ours, got[AllProviders][0].released)
		}
		stop()
	})
}
