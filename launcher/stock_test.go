package launcher_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// When nobody keeps a label in stock any more, nobody asks for nodes of it: also
// what was asked for and still waits is given up. The stock of another label, elsewhere,
// stays.
func TestStockThatNobodyWants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*configs.Config){
		"min-ready 0": func(c *configs.Config) { c.Labels[0].MinReady = 0 },
		"label gone": func(c *configs.Config) {
			c.Labels, c.Providers[0].Pools[0].Labels = c.Labels[1:], c.Providers[0].Pools[0].Labels[1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, strings.Replace(beside(withStock), "{name: tiny}", "{name: tiny, min-ready: 1}", 1))
			s.image()
			s.config.Providers[0].Pools[0].MaxServers = 1
			quick := func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond }
			first, second := s.launch(quick, named("nl01")), s.launch(quick, named("nl02"))
			waiting := func() int {
				requests, err := s.store.Requests(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(requests)
			}
			zktest.Eventually(t, func() bool { return waiting() == 2 && s.free() == 2 }, "one of each in stock, two asked for")
			kept := s.nodesAt("other")[0]
			first.stop()
			second.stop()
			change(s.config)
			s.launch(quick, named("nl01"))
			s.launch(quick, named("nl02"))
			zktest.Eventually(t, func() bool { return waiting() == 0 }, "nothing asked for")
			if nodes := s.nodesAt("cloud"); len(nodes) != 1 || nodes[0].State != zkmodel.NodeReady {
				t.Errorf("%d nodes are left, want the one in stock", len(nodes))
			}
			if nodes := s.nodesAt("other"); len(nodes) != 1 || nodes[0].ID != kept.ID || nodes[0].Stat.Mzxid != kept.Stat.Mzxid {
				t.Errorf("the other stock is %d nodes, want node %s as it was", len(nodes), kept.ID)
			}
		})
	}
}
