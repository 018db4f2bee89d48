package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/test/statsdtest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// Mistakes: a name that is not Nodepool's; a launch of a zone or requestor that is not told; a
// state that is left out, so that a graph stands still; nodes that are told by each launcher.
func TestStatsd(t *testing.T) {
	server := statsdtest.Start(t)
	seen := &tree{
		nodes: []*zkmodel.Node{
			{Provider: "cloud", Pool: "main", State: zkmodel.NodeReady, Type: zkmodel.Strings{"small", "old"}},
			{Provider: "gone", Pool: "main", State: zkmodel.NodeHold, Type: zkmodel.Strings{"small"}},
		},
		requests: []*zkmodel.Request{
			{State: zkmodel.RequestRequested, NodeTypes: []string{"small"}},
			{State: zkmodel.RequestFulfilled, NodeTypes: []string{"small", "small"}},
			{State: zkmodel.RequestRequested, NodeTypes: []string{"large"}},
		},
		pools: []*zkmodel.Component{
			{ProviderName: "cloud", PoolName: "main", SupportedLabels: zkmodel.Strings{"small"}},
			{ProviderName: "cloud", PoolName: "main", SupportedLabels: zkmodel.Strings{"small"}},
			{ProviderName: "theirs", PoolName: "p", SupportedLabels: zkmodel.Strings{"arm"}},
		},
	}
	m, err := New(prometheus.NewRegistry(), server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	of := site(seen, "cloud", "down")
	of.Config.TenantLimits = []configs.TenantLimit{{Tenant: "t.1", Limits: providers.Resources{providers.Cores: 8}}}
	p := of.Pools[0]
	m.Tried(p, &zkmodel.Node{AZ: "nova"}, "zuul.example.org:zuul", nil, 1500*time.Millisecond)
	m.Tried(p, &zkmodel.Node{}, "", providers.ErrQuota, time.Second)
	m.Leaked("cloud")
	expected := func(from int, want ...string) {
		t.Helper()
		zktest.Eventually(t, func() bool { return len(server.Lines()) >= from+len(want) }, "all is told")
		if got := server.Lines()[from:]; !slices.Equal(got, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	launches := []string{
		"nodepool.launch.provider.cloud.ready:1500.000000|ms", "nodepool.launch.provider.cloud.ready:1|c",
		"nodepool.launch.ready:1500.000000|ms", "nodepool.launch.ready:1|c",
		"nodepool.launch.provider.cloud.nova.ready:1500.000000|ms", "nodepool.launch.provider.cloud.nova.ready:1|c",
		"nodepool.launch.requestor.zuul_example_org_zuul.ready:1500.000000|ms", "nodepool.launch.requestor.zuul_example_org_zuul.ready:1|c",
		"nodepool.launch.provider.cloud.error.quota:1000.000000|ms", "nodepool.launch.provider.cloud.error.quota:1|c",
		"nodepool.launch.error.quota:1000.000000|ms", "nodepool.launch.error.quota:1|c",
		"nodepool.provider.cloud.leaked.instances:1|c",
	}
	expected(0, launches...)

	of.Elected = func() bool { return false }
	m.tellStats(of)
	limits := []string{
		"nodepool.provider.cloud.max_servers:3|g", "nodepool.provider.down.max_servers:3|g", "nodepool.tenant_limits.t_1.cores:8|g",
	}
	expected(len(launches), limits...)
	of.Elected = func() bool { return true }
	m.tellStats(of)
	had := len(launches) + len(limits)
	states := len(zkmodel.NodeStates())
	all := len(limits) + states*5 + 2 + 2 // all nodes, two providers, two labels; what is registered nowhere; pools
	zktest.Eventually(t, func() bool { return len(server.Lines()) >= had+all }, "all is told")
	got := server.Lines()[had:]
	if len(got) != all {
		t.Errorf("told %d figures, want %d", len(got), all)
	}
	for _, want := range []string{
		"nodepool.nodes.ready:1|g", "nodepool.nodes.hold:1|g", "nodepool.nodes.building:0|g", "nodepool.provider.cloud.nodes.ready:1|g",
		"nodepool.provider.theirs.nodes.aborted:0|g", "nodepool.provider.gone.nodes.hold:1|g", "nodepool.label.small.nodes.ready:1|g",
		"nodepool.label.small.nodes.hold:1|g", "nodepool.label.old.nodes.ready:1|g", "nodepool.label.arm.nodes.in-use:0|g",
		"nodepool.provider.cloud.pool.main.addressable_requests:2|g", "nodepool.provider.theirs.pool.p.addressable_requests:0|g",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("not told: %s, in\n%s", want, strings.Join(got, "\n"))
		}
	}
}
