package launcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
)

// Mistake: idle nodes whose machines were deleted or stopped in the cloud are given to requests.
func TestIdleNodesWhoseMachineIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(stockOfSmall, "min-ready: 1", "min-ready: 3", 1))
	s.image()
	quick := func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond }
	s.launch(quick, named("nl01"))
	s.launch(quick, named("nl02"))
	zktest.Eventually(t, func() bool { return s.free() == 3 }, "three nodes in stock")
	nodes, cloud, ctx := s.nodes(), s.clouds["cloud"], context.WithoutCancel(t.Context())
	if err := cloud.DeleteNode(ctx, nodes[0].ExternalID.Text()); err != nil {
		t.Fatal(err)
	}
	if err := cloud.Break(nodes[1].ExternalID.Text(), "its server is in state SHUTOFF"); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		there := map[string]bool{}
		for _, n := range s.nodes() {
			there[n.ID] = true
		}
		return !there[nodes[0].ID] && !there[nodes[1].ID] && there[nodes[2].ID] && s.free() == 3
	}, "both nodes are replaced, and the third one stays")
	if n := s.machines("cloud"); n != 3 {
		t.Errorf("%d machines are in the cloud", n)
	}
}
