package launcher_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
)

// stockOfSmall keeps one small node in stock, in a pool of four.
var stockOfSmall = strings.NewReplacer("{name: small}", "{name: small, min-ready: 1}", "max-servers: 5", "max-servers: 4").Replace(onePool)

// Mistake: the stock is launched again with the room that was freed for a request, and evicted
// again, until the pool drains for the request.
func TestStockIsEvictedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		inUse, want int // large nodes
	}{
		"the request needs the whole pool": {0, 4},
		"two nodes are in use":             {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, stockOfSmall)
			s.image()
			var created atomic.Int64
			s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
				if c.Op == fake.OpCreate && c.Done {
					created.Add(1)
				}
				return nil
			})
			s.launch()
			if c.inUse > 0 {
				nodes, err := s.zuul.Accept(t.Context(), s.wait(s.submit(wish(strings.Fields(strings.Repeat("large ", c.inUse))...))))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.zuul.Use(nodes...); err != nil {
					t.Fatal(err)
				}
			}
			zktest.Eventually(t, func() bool { return s.free() == 1 }, "one node is in stock")
			before := created.Load()
			if out := s.wait(s.submit(wish(strings.Fields(strings.Repeat("large ", c.want))...))); out.State != "fulfilled" {
				t.Fatalf("%+v", out)
			}
			if made := created.Load() - before; made != int64(c.want) {
				t.Errorf("%d machines were created for a request of %d nodes", made, c.want)
			}
		})
	}
}
