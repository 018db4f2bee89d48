package launcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The nodes of a provider that nobody serves are left as they are, whatever their state
// and whosever they were; they go when an operator has them erased, which takes that
// nobody needs them.
func TestNodesOfUnservedProvidersAreLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, closedClouds)
	s.image()
	ctx := t.Context()
	states := []zkmodel.NodeState{
		zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeTesting, zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.NodeUsed,
		zkmodel.NodeHold, zkmodel.NodeFailed, zkmodel.NodeAborted, zkmodel.NodeDeleting, zkmodel.NodeDeleted, "melting",
	}
	if err := s.store.Session().EnsurePath(ctx, zkmodel.NodesRoot); err != nil {
		t.Fatal(err)
	}
	before := map[string]recipe.Stat{}
	for i, state := range states {
		for j, more := range []string{``, `, "allocated_to": "100-0000009999"`, `, "hold_expiration": 1, "launcher": "gone"`} {
			at := zkmodel.NodePath(fmt.Sprintf("%010d", 1000+10*i+j))
			data := fmt.Sprintf(`{"state": %q, "provider": "elsewhere", "pool": "main", "type": ["small"], "external_id": "vm", "state_time": 1%s}`, state, more)
			if _, err := s.store.Session().Create(ctx, at, []byte(data), recipe.Persistent); err != nil {
				t.Fatal(err)
			}
			stat, _, err := s.store.Session().Exists(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			before[at] = stat
		}
	}
	for _, host := range []string{"nl01", "nl02"} {
		l := s.launch(named(host), func(d *launcher.Deps) { d.Resync = 50 * time.Millisecond })
		zktest.Eventually(t, func() bool { return l.Ready() == nil }, "the launcher to serve")
	}
	for range 4 { // there is work, and time to see everything
		taken, err := s.zuul.Accept(ctx, s.wait(s.submit(wish("small", "small"))))
		if err == nil {
			err = s.zuul.Use(taken...)
		}
		if err == nil {
			err = s.zuul.Return(taken...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for at, old := range before {
		stat, there, err := s.store.Session().Exists(ctx, at)
		if err != nil || !there || stat.Mzxid != old.Mzxid {
			n, _ := s.store.Node(ctx, strings.TrimPrefix(at, zkmodel.NodesRoot+"/"))
			t.Errorf("%s was touched: there %v, %+v (%v)", at, there, n, err)
		}
	}

	if who, err := s.store.Serving(ctx, "other"); err != nil || len(who) != 4 { // its pools, and the launchers
		t.Errorf("other is served by %q (%v)", who, err)
	}
	erase := func() error {
		h, err := s.store.Holdings(ctx, "elsewhere")
		if err != nil {
			return err
		}
		return s.store.Erase(ctx, h)
	}
	if err := erase(); err == nil || strings.Count(err.Error(), "is in-use") != 3 || strings.Count(err.Error(), "is hold") != 3 {
		t.Errorf("erased, or refused for another reason: %v", err)
	}
	for _, n := range s.nodes() {
		if n.Provider == "elsewhere" && slices.Contains([]zkmodel.NodeState{zkmodel.NodeInUse, zkmodel.NodeHold}, n.State) {
			if err := s.store.Session().DeleteTree(ctx, n.Path()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := erase(); err != nil {
		t.Error(err)
	}
	if left := slices.DeleteFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.Provider != "elsewhere" }); len(left) > 0 {
		t.Errorf("%d nodes are left", len(left))
	}
}
