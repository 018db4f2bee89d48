package zkmodel_test

import (
	"errors"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A request is accepted, begun and finished in one transaction each.
func TestRequestInBundles(t *testing.T) {
	_, session := connect(t)
	st := zkmodel.NewStore(session, nil)
	ctx := t.Context()
	for _, p := range []string{zkmodel.LocksRoot, zkmodel.NodesRoot} {
		if err := st.Session().EnsurePath(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"a", "b"}}
	if err := st.CreateRequest(ctx, "200", r); err != nil {
		t.Fatal(err)
	}
	r.State, r.StateTime = zkmodel.RequestPending, 1
	stale := *r
	nodes := []*zkmodel.Node{{Type: zkmodel.Strings{"a"}}, {Type: zkmodel.Strings{"b"}}}
	lock, err := st.AcceptRequest(ctx, r, nodes)
	if err != nil {
		t.Fatal(err)
	}
	if nodes[0].ID == "" || nodes[0].ID == nodes[1].ID {
		t.Fatalf("ids %q and %q", nodes[0].ID, nodes[1].ID)
	}
	if _, err := st.AcceptRequest(ctx, &stale, nil); !errors.Is(err, recipe.ErrVersion) && !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("accepted twice: %v", err)
	}
	for _, n := range nodes {
		n.State, n.StateTime = zkmodel.NodeBuilding, 2
	}
	locks, err := st.BeginNodes(ctx, lock, nodes)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := st.LockNode(ctx, nodes[1].ID, ""); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("second node is not locked: %v", err)
	}
	nodes[0].State, nodes[0].StateTime = zkmodel.NodeReady, 3
	r.State, r.StateTime = zkmodel.RequestFulfilled, 3
	all := append(locks, lock)
	byHand := *nodes[1]
	byHand.Stat.Version++
	if err := st.FinishRequest(ctx, all, r, nodes[:1], &byHand); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("finished with a node that another has changed: %v", err)
	}
	if err := st.FinishRequest(ctx, all, r, nodes[:1], nodes[1]); err != nil {
		t.Fatal(err)
	}
	again, err := st.Request(ctx, r.ID)
	if err != nil || again.State != zkmodel.RequestFulfilled {
		t.Errorf("request is %s (%v)", again.State, err)
	}
	held, n, err := st.LockNode(ctx, nodes[0].ID, "")
	if err != nil || n.State != zkmodel.NodeReady {
		t.Fatalf("node is %+v (%v)", n, err)
	}
	if err := st.DeleteNode(ctx, held, n); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Node(ctx, n.ID); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("deleted node: %v", err)
	}
	// Its lock was taken before, so this takes two transactions.
	again.State, again.StateTime = zkmodel.RequestPending, 4
	if lock, err = st.AcceptRequest(ctx, again, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.DropRequest(ctx, []*recipe.Held{lock}, again, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Request(ctx, r.ID); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("dropped request: %v", err)
	}
}
