package main

import (
	"strings"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: hold takes a node out of its deletion, or stops a launch that another
// launcher would go on with; a refusal that writes, keeps the lock, or does not say why;
// a hold that is refused where the table allows it.
func TestHoldObeysTheTable(t *testing.T) {
	const id = "0000000001"
	for state, held := range map[zkmodel.NodeState]bool{
		zkmodel.NodeReady: true, zkmodel.NodeInUse: true, zkmodel.NodeUsed: true, zkmodel.NodeHold: true,
		zkmodel.NodeInit: false, zkmodel.NodeBuilding: false, zkmodel.NodeTesting: false, zkmodel.NodeFailed: false,
		zkmodel.NodeAborted: false, zkmodel.NodeDeleting: false, zkmodel.NodeDeleted: false, "melting": false,
	} {
		t.Run(string(state), func(t *testing.T) {
			u := newTool(t, "")
			u.znode(zkmodel.NodePath(id), `{"state": "`+string(state)+`", "provider": "cloud", "state_time": 1, "comment": "first"}`)
			before, stat, err := u.session.Get(t.Context(), zkmodel.NodePath(id))
			if err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := u.run("hold", id, "--reason", "second")
			if want := map[bool]int{true: exitDone, false: exitFailed}[held]; code != want {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			after, now, err := u.session.Get(t.Context(), zkmodel.NodePath(id))
			if err != nil {
				t.Fatal(err)
			}
			n := zkmodel.DecodeNode(id, after, now)
			if held && (n.State != zkmodel.NodeHold || !strings.Contains(n.Comment, "second") || n.StateTime == 1) {
				t.Errorf("node is %s since %v: %q", n.State, n.StateTime, n.Comment)
			}
			if !held && (string(after) != string(before) || now.Version != stat.Version) {
				t.Errorf("a refusal has written %s", after)
			}
			if says := "move node " + id + " from " + string(state) + " to hold by an operator: not a transition; it may become "; !held && !strings.Contains(stderr, says) {
				t.Errorf("the refusal says %q", stderr)
			}
			if locked, err := recipe.Locked(t.Context(), u.session, zkmodel.LockPath(zkmodel.NodePath(id))); err != nil || locked {
				t.Errorf("the lock is held: %v %v", locked, err)
			}
		})
	}
}
