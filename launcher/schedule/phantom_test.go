package schedule

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A pool of two is taken by two records. Mistakes: "is full" where no server shows, or where
// records cannot be read; another launcher as the cause where none is registered.
func TestReasonsNameTheirCause(t *testing.T) {
	full := aPool(func(p *Pool) { p.Limits = providers.Resources{providers.Instances: 2} })
	unread := func(id string) *zkmodel.Node {
		return zkmodel.DecodeNode(id, []byte("{"), recipe.Stat{DataLength: 1, Czxid: 1})
	}
	deleted := func(id string) *zkmodel.Node {
		n := aNode(id, zkmodel.NodeDeleting, "a")
		n.StateTime, n.DeleteError = zkmodel.EpochOf(time.Unix(1, 0)), "500 no answer"
		return n
	}
	failed := aNode("9", zkmodel.NodeDeleting, "a")
	failed.StateTime, failed.DeleteError, failed.ExternalID = zkmodel.EpochOf(time.Unix(970, 0)), "hypervisor is down", zkmodel.TextValue("vm")
	for name, tc := range map[string]struct {
		nodes  []*zkmodel.Node
		cause  Cause
		reason string
	}{
		"in use":     {[]*zkmodel.Node{aNode("7", "in-use", "a"), aNode("8", "in-use", "a")}, Quota, "pool main is full: instances 2 used"},
		"unreadable": {[]*zkmodel.Node{unread("7"), unread("8")}, Quota, "the records of 2 nodes cannot be read, so each counts as a node: to remove the first: poolkeeper node-delete --broken 7"},
		"a server not deleted": {
			[]*zkmodel.Node{aNode("7", "in-use", "a"), failed},
			Provider,
			"provider cloud: the cloud does not delete the server of node 9 since 1970-01-01 00:16:10 UTC: hypervisor is down",
		},
		"not deleted": {[]*zkmodel.Node{deleted("7"), deleted("8")}, Provider, "provider cloud does not confirm the deletion of 2 nodes: 500 no answer"},
	} {
		d := Assign(&Snapshot{Now: time.Unix(1000, 0), Pools: []*Pool{full}, Nodes: tc.nodes, Requests: []*zkmodel.Request{aRequest("100-1", "a")}})
		w, waits := d[0].(Wait)
		if !waits || w.Cause != tc.cause || !strings.Contains(w.Why(), tc.reason) {
			t.Errorf("%s: %+v", name, d[0])
		}
	}
}

func TestOnlyARegisteredLauncherHasTheQuota(t *testing.T) {
	ours := aPool(func(p *Pool) { p.HoldsQuota = false })
	decide := func(registered ...*zkmodel.Component) Wait {
		d := Assign(&Snapshot{Now: time.Unix(1000, 0), Pools: []*Pool{ours}, Registered: registered, Requests: []*zkmodel.Request{aRequest("100-1", "a")}})
		w, _ := d[0].(Wait)
		return w
	}
	us := &zkmodel.Component{ID: ours.ID, ProviderName: ours.Provider}
	if w := decide(us); strings.Contains(w.Why(), "another") || w.Cause != Undecided || !w.NeedsQuota {
		t.Errorf("one launcher: %s %q", w.Cause, w.Why())
	}
	if w := decide(us, other("x", ours.Provider, 100)); !strings.Contains(w.Why(), "another launcher has the quota") || w.Cause != Busy {
		t.Errorf("two launchers: %s %q", w.Cause, w.Why())
	}
}
