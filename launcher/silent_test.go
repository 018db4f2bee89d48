package launcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// A pool that is registered but answers nobody, as one of a launcher that hangs,
// holds up no request for longer than the grace that it is given, also where the
// others take turns with the quota.
func TestSilentPoolHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	for i := range 6 { // most requests are theirs to take first
		s.foreignPool(zkmodel.Component{
			ID: fmt.Sprintf("silent-%d", i), PoolName: "main", ProviderName: "cloud", SupportedLabels: zkmodel.Strings{"small"},
		})
	}
	for range 3 {
		s.launch()
	}
	zktest.Eventually(t, func() bool { return len(s.pools()) == 9 }, "nine pools registered")
	for i := range 10 {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		if err := s.zuul.Run(ctx, zuul.Wish{Labels: []string{"small"}, Fresh: true}, func([]*zuul.Node) error { return nil }); err != nil {
			t.Error(err)
		}
		cancel()
		t.Logf("request %d took %s", i, time.Since(start))
	}
}
