package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// goodLook is a moment at which all is well: a request with its nodes, a node in
// use, one that is held, one in stock, one that boots, and a static one.
func goodLook() *look {
	l := &look{at: time.Unix(1000, 0), machines: map[string][]providers.NodeInfo{"east": nil, "west": nil}}
	l.requests = []*zkmodel.Request{
		{ID: "200-1", State: zkmodel.RequestFulfilled, NodeTypes: []string{"small", "large"}, Nodes: []string{"n1", "n2"}},
		{ID: "200-2", State: zkmodel.RequestPending, NodeTypes: []string{"small"}},
		{ID: "200-3", State: zkmodel.RequestFailed, NodeTypes: []string{"moon"}, Reason: "no pool has the label moon"},
		{ID: "900-4", State: zkmodel.RequestRequested, NodeTypes: []string{"kept"}, Requestor: stockRequestor},
	}
	l.add("n1", "west/main", "small", zkmodel.NodeReady, "200-1").AZ = "w1"
	l.add("n2", "west/main", "large", zkmodel.NodeReady, "200-1").AZ = "w1"
	l.add("n3", "east/main", "small", zkmodel.NodeInUse, "200-0").Locked = true
	held := l.add("n4", "east/main", "small", zkmodel.NodeHold, "200-0")
	held.StateTime, held.HoldExpiration = zkmodel.EpochOf(l.at.Add(-time.Second)), 2
	l.add("n5", "east/main", "kept", zkmodel.NodeReady, "")
	l.add("n6", "east/spare", "small", zkmodel.NodeBuilding, "200-2").Locked = true
	rack := l.add("n7", "racks/main", "rack", zkmodel.NodeReady, "")
	rack.Hostname, rack.Slot = "rack1", zkmodel.IntValue(0)
	return l
}

// add adds a node and its machine.
func (l *look) add(id, where, label string, state zkmodel.NodeState, owner string) *zkmodel.Node {
	provider, pool, _ := strings.Cut(where, "/")
	n := &zkmodel.Node{
		ID: id, Provider: provider, Pool: pool, Type: zkmodel.Strings{label}, State: state, AllocatedTo: owner, Resources: nodeSize(),
	}
	l.nodes = append(l.nodes, n)
	if list, cloud := l.machines[provider]; cloud {
		l.machines[provider] = append(list, providers.NodeInfo{
			ExternalID: "m" + id, Metadata: map[string]string{providers.MetaNode: id, providers.MetaPool: pool},
		})
	}
	return n
}

// complaints are what the rules say of a moment.
func (l *look) complaints() []string {
	var all []string
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	machineRules(l, wrong)
	recordRules(l, true, func(string) bool { return true }, wrong)
	requestRules(l, wrong)
	stockRules(l, true, wrong)
	return slices.Sorted(slices.Values(append(all, slices.Collect(maps.Values(oddities(l)))...)))
}

// Each rule finds what it is there for, and nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want   string // "" is nothing
		change func(*look)
	}{
		{"", func(*look) {}},
		{"node n6 has two machines in east", func(l *look) { l.machines["east"] = append(l.machines["east"], l.machines["east"][3]) }},
		{"records of east/main take 5 instances, the limit is 4", func(l *look) {
			l.machines = nil
			l.add("n8", "east/main", "small", zkmodel.NodeReady, "")
			l.add("n9", "east/main", "small", zkmodel.NodeReady, "")
		}},
		{"records of east/spare take 12 cores, the limit is 8", func(l *look) {
			l.machines = nil
			l.add("n8", "east/spare", "small", zkmodel.NodeReady, "")
			l.add("n9", "east/spare", "small", zkmodel.NodeReady, "")
		}},
		{"machines of west/main take 40960 ram, the limit is 32768", func(l *look) {
			list := l.machines["west"]
			for i := range 3 {
				m := list[0]
				m.ExternalID, m.Metadata = fmt.Sprint("x", i), map[string]string{providers.MetaNode: fmt.Sprint("x", i), providers.MetaPool: "main"}
				l.machines["west"] = append(l.machines["west"], m)
				l.nodes = append(l.nodes, &zkmodel.Node{ID: fmt.Sprint("x", i), State: zkmodel.NodeReady})
			}
		}},
		{"tenant-two has 6 nodes, the limit is 5", func(l *look) {
			for _, n := range l.nodes[:6] {
				n.TenantName = limitedTenant
			}
		}},
		{"node n6: the cloud was asked for more than it has: full", func(l *look) { l.nodes[5].State, l.nodes[5].Reason = zkmodel.NodeAborted, "full" }},
		{"nodes n7 and n8 are both slot rack1 0", func(l *look) {
			n := l.add("n8", "racks/main", "rack", zkmodel.NodeReady, "")
			n.Hostname, n.Slot = "rack1", zkmodel.IntValue(0)
		}},
		{"request 200-3 failed for no reason", func(l *look) { l.requests[2].Reason = "" }},
		{"request 200-1 of [small large] is fulfilled with [n1]", func(l *look) { l.requests[0].Nodes = []string{"n1"} }},
		{"request 200-1 is fulfilled with node n9, which is not there", func(l *look) { l.requests[0].Nodes = []string{"n1", "n9"} }},
		{"request 200-1 of [small large] is fulfilled with node n2, in-use [large] of \"200-1\"", func(l *look) {
			l.nodes[1].State, l.nodes[1].Locked = zkmodel.NodeInUse, true
		}},
		{"request 200-1 has nodes in map[west main w1:true west main w2:true]", func(l *look) { l.nodes[1].AZ = "w2" }},
		{"requests 200-1 and 200-5 both have node n1", func(l *look) {
			twin := *l.requests[0]
			twin.ID = "200-5"
			l.requests = append(l.requests, &twin)
		}},
		{"3 nodes of kept are asked for as stock, 2 is its min-ready", func(l *look) { l.requests = append(l.requests, l.requests[3], l.requests[3]) }},
		{"1 nodes of kept are in stock and 2 asked for, 2 is its min-ready", func(l *look) { l.requests = append(l.requests, l.requests[3]) }},
		{"machine without a record", func(l *look) { l.nodes = slices.Delete(l.nodes, 2, 3) }},
		{"node without a machine", func(l *look) { l.machines["east"] = l.machines["east"][1:] }},
		{"node of a requestor that is gone", func(l *look) { l.nodes[2].Locked = false }},
		{"node held for too long", func(l *look) { l.nodes[3].HoldExpiration = 0 }},
		{"node of a request that is gone", func(l *look) { l.nodes[4].AllocatedTo = "200-9" }},
		{"launch of a request that is gone", func(l *look) { l.nodes[5].AllocatedTo, l.nodes[5].Locked = "200-9", false }},
		{"node on its way out", func(l *look) { l.nodes[4].State = zkmodel.NodeDeleting }},
		{"broken record", func(l *look) { l.nodes[4].Broken = errWrong }},
	} {
		l := goodLook()
		tc.change(l)
		got := l.complaints()
		if tc.want == "" && len(got) > 0 || tc.want != "" && !slices.Contains(got, tc.want) {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
