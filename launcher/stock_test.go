package launcher_test

import (
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// When nobody keeps a label in stock any more, nobody asks for nodes of it: also
// what was asked for and still waits is given up.
func TestStockThatNobodyWants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*configs.Config){
		"min-ready 0": func(c *configs.Config) { c.Labels[0].MinReady = 0 },
		"label gone": func(c *configs.Config) {
			c.Labels, c.Providers[0].Pools[0].Labels = c.Labels[1:], c.Providers[0].Pools[0].Labels[1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, withStock)
			s.image()
			s.config.Providers[0].Pools[0].MaxServers = 1
			quick := func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond }
			first := s.launch(quick)
			waiting := func() int {
				requests, err := s.store.Requests(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(requests)
			}
			zktest.Eventually(t, func() bool { return waiting() == 2 && s.free() == 1 }, "one in stock, two asked for")
			first.stop()
			change(s.config)
			s.launch(quick)
			zktest.Eventually(t, func() bool { return waiting() == 0 }, "nothing asked for")
			if nodes := s.nodes(); len(nodes) != 1 || nodes[0].State != zkmodel.NodeReady {
				t.Errorf("%d nodes are left, want the one in stock", len(nodes))
			}
		})
	}
}
