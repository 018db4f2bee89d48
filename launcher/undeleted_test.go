package launcher_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// stuckCloud is a cloud whose first machine does not boot, and is not deleted before it is freed.
type stuckCloud struct {
	hangs bool // its deletion does, and does not fail

	mu    sync.Mutex
	first string
	freed chan struct{}
	most  int // machines at one moment
}

func (c *stuckCloud) hook(s *site, name string) fake.Hook {
	return func(ctx context.Context, call fake.Call) error {
		now := 0
		if call.Op == fake.OpCreate && call.Done {
			now = s.machines(name) //nolint:contextcheck // a test helper
		}
		c.mu.Lock()
		if call.Op == fake.OpWait && c.first == "" {
			c.first = call.ID
		}
		first := c.first == call.ID
		c.most = max(c.most, now)
		c.mu.Unlock()
		switch {
		case call.Done || !first:
		case call.Op == fake.OpWait:
			return fmt.Errorf("%w: no hypervisor", providers.ErrNodeFailed)
		case call.Op == fake.OpDeleteNode && c.hangs:
			select {
			case <-c.freed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case call.Op == fake.OpDeleteNode:
			select {
			case <-c.freed:
			default:
				return fmt.Errorf("%w: hypervisor is down", providers.ErrNodeFailed)
			}
		}
		return nil
	}
}

// isLeft checks that one machine has a record of its own, with its ids, and that the nodes which are launched have others.
func (s *site) isLeft(launching []string) {
	s.t.Helper()
	var left []*zkmodel.Node
	launches := map[string]bool{}
	for _, n := range s.nodes() {
		if slices.Contains(launching, n.ID) {
			launches[n.LaunchID] = true
		} else if n.State == zkmodel.NodeDeleting {
			left = append(left, n)
		}
	}
	list, err := s.clouds["cloud"].ListNodes(s.t.Context())
	if err != nil || len(left) != 1 {
		s.t.Fatalf("%d records of machines that are not deleted: %v", len(left), err)
	}
	i := slices.IndexFunc(list, func(m providers.NodeInfo) bool { return m.ExternalID == left[0].ExternalID.Text() })
	if i < 0 || list[i].Metadata[providers.MetaLaunch] != left[0].LaunchID || launches[left[0].LaunchID] || left[0].AllocatedTo != "" {
		s.t.Errorf("%+v is not the record of its machine alone", left[0])
	}
}

// A server that the cloud cannot delete does not block its request: another attempt is made beside it if the limits
// leave room, or another provider serves the request; else the request waits and the reason names the server. Mistakes:
// a request that waits for the deletion; more machines than the limit; a machine without a record, or with two.
func TestServerThatIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers string // max-servers
		hangs   bool
		label   string
		waits   bool
		most    int
	}{
		"another attempt":            {servers: "max-servers: 2", label: "small", most: 2},
		"a deletion that hangs":      {servers: "max-servers: 2", hangs: true, label: "small", most: 2},
		"another provider":           {servers: "max-servers: 1", label: "mini", most: 1},
		"another provider, it hangs": {servers: "max-servers: 1", hangs: true, label: "mini", most: 1},
		"no room, no other provider": {servers: "max-servers: 1", label: "small", waits: true, most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			yaml := strings.Replace(beside(onePool), "max-servers: 5", tc.servers, 1)
			yaml = strings.Replace(yaml, "labels:\n          - {name: small", "priority: 1\n        labels:\n          - {name: mini, diskimage: debian, min-ram: 1024}\n          - {name: small", 1)
			s := newSite(t, yaml)
			s.image()
			cloud := &stuckCloud{hangs: tc.hangs, freed: make(chan struct{})}
			s.clouds["cloud"].SetHook(cloud.hook(s, "cloud"))
			l := s.launch(func(d *launcher.Deps) { d.Resync = time.Second })
			id := s.submit(wish(tc.label))
			if tc.waits {
				s.waits(id, "the cloud does not delete the server of node", l)
				s.waits(id, "hypervisor is down", l)
				close(cloud.freed)
			}
			nodes := s.mustBeServed(id)
			if !tc.waits {
				if tc.most > 1 {
					s.isLeft(nodes)
				}
				zktest.Eventually(t, func() bool {
					return slices.ContainsFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.Stuck(time.Now().Add(time.Minute)) && n.DeleteError != "" })
				}, "a stuck deletion is in the tree")
				close(cloud.freed)
			}
			s.useAll([]string{id})
			s.settled()
			if cloud.most != tc.most {
				t.Errorf("%d machines at one moment, want %d", cloud.most, tc.most)
			}
		})
	}
}
