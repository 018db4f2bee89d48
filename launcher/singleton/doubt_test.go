package singleton

import (
	"errors"
	"maps"
	"testing"

	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Mistake: idle nodes whose machines were stopped or deleted stay idle; or a list that failed, is
// partial, or began before a node was ready makes a machine missing.
func TestIdleMachinesAreDoubted(t *testing.T) {
	node := func(id string, change ...func(*zkmodel.Node)) *zkmodel.Node {
		n := &zkmodel.Node{ID: id, State: zkmodel.NodeReady, Provider: "cloud", ExternalID: zkmodel.TextValue("m" + id)}
		for _, c := range change {
			c(n)
		}
		return n
	}
	runs, down := machine("1"), machine("2")
	runs.ExternalID, down.ExternalID, down.Down = "m1", "m2", "its server is in state SHUTOFF"
	all := []providers.NodeInfo{runs, down}
	nodes := []*zkmodel.Node{
		node("1"), node("2"), node("3"),
		node("4", func(n *zkmodel.Node) { n.AllocatedTo = "200-1" }),
		node("5", func(n *zkmodel.Node) { n.State = zkmodel.NodeBuilding }),
		node("6", func(n *zkmodel.Node) { n.Provider = "other" }),
		node("7", func(n *zkmodel.Node) { n.ExternalID = zkmodel.Value{} }),
	}
	found := map[string]schedule.Doubt{
		"m2": {Why: "its server is in state SHUTOFF"}, "m3": {Why: "its machine is missing in the cloud", Missing: true},
	}
	before := map[string]schedule.Doubt{"m9": {Why: "it was so"}}
	for name, tc := range map[string]struct {
		machines []providers.NodeInfo
		err      error
		late     bool // the nodes become ready while the list is read
		want     map[string]schedule.Doubt
	}{
		"complete": {all, nil, false, found},
		"failed":   {nil, errors.New("500"), false, before},
		"partial":  {all, &providers.PartialError{Err: errors.New("403")}, false, before},
		"older":    {all, nil, true, nil},
	} {
		c := &leakCloud{machines: tc.machines, listing: tc.err, doubts: before}
		if tc.late {
			c.listed = func() { c.nodes = nodes }
		} else {
			c.nodes = nodes
		}
		_ = c.leaks().pass(t.Context())
		if !maps.Equal(c.doubts, tc.want) {
			t.Errorf("%s: %v, want %v", name, c.doubts, tc.want)
		}
	}
}
