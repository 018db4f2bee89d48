package observe_test

import (
	"encoding/json"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/observe"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// writeNode writes the record of a node as another program does: without an event.
func (s *site) writeNode(id, provider string, state zkmodel.NodeState, reason string) {
	s.t.Helper()
	data, err := json.Marshal(map[string]any{
		"state": state, "provider": provider, "type": []string{"small"}, "reason": reason, "state_time": float64(time.Now().UnixNano()) / 1e9,
	})
	if err == nil {
		err = s.own.Session().EnsurePath(s.t.Context(), zkmodel.NodePath(id))
	}
	if err == nil {
		_, err = s.own.Session().Set(s.t.Context(), zkmodel.NodePath(id), data, recipe.AnyVersion)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Two providers, of which launchers of ours serve one, and one of Nodepool's the other.
// Mistakes: a node that others hold or delete, of which nothing is told; one that is deleted
// as it was used, by a launcher of either make, and is told as if people had done so; what
// ours do that is told twice; what was held before that is told anew.
func TestNodesOfOthersAreObserved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	for name, pool := range map[string]string{
		"ours":   `{"hostname": "nl01", "kind": "pool", "state": "running", "provider_name": "north", "knows": ["verdicts"]}`,
		"theirs": `{"hostname": "nl02", "kind": "pool", "state": "running", "provider_name": "south"}`,
	} {
		at := zkmodel.ComponentsRoot + "/" + zkmodel.KindPool
		err := s.own.Session().EnsurePath(ctx, at)
		if err == nil {
			_, err = s.own.Session().Create(ctx, at+"/"+name+"0000000000", []byte(pool), recipe.Ephemeral)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.writeNode("01", "north", zkmodel.NodeHold, "")
	for _, id := range []string{"02", "03", "04", "07", "08"} {
		s.writeNode(id, "north", zkmodel.NodeReady, "")
	}
	for _, id := range []string{"05", "06", "09"} {
		s.writeNode(id, "south", zkmodel.NodeReady, "")
	}
	one := s.agent("one", observe.Images, observe.Nodes)
	mark := s.saved(observe.Nodes, recipe.Stat{})
	two := s.agent("two", observe.Images, observe.Nodes)

	s.writeNode("02", "north", zkmodel.NodeHold, "")
	s.writeNode("03", "north", zkmodel.NodeDeleting, "")
	s.writeNode("04", "north", zkmodel.NodeDeleting, "it was used") // by a launcher of ours
	s.writeNode("05", "south", zkmodel.NodeDeleting, "")            // by Nodepool's launcher, or its command
	s.writeNode("06", "south", zkmodel.NodeHold, "")
	person := operate.New(two.store, "ann")
	if err := person.Hold(ctx, "07", "", 0); err != nil {
		t.Fatal(err)
	}
	if err := person.DeleteNode(ctx, "08"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"node.held node/02 observed", "node.deleting node/03 observed", "node.held node/06 observed", "node.held node/07", "node.deleting node/08",
	}
	s.eventually(want...)
	s.writeNode("02", "north", zkmodel.NodeHold, "") // which it was
	one.stop()
	two.stop()
	s.writeNode("09", "south", zkmodel.NodeHold, "")
	s.writeNode("01", "north", zkmodel.NodeDeleting, "")
	s.agent("three", observe.Nodes)
	s.eventually(append(want, "node.held node/09 observed", "node.deleting node/01 observed")...)
	s.saved(observe.Nodes, mark)
}
