package zkmodel_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: where a folder cannot be made, for want of rights, an operator is told that something does not exist.
func TestFoldersThatMayNotBeMade(t *testing.T) {
	t.Parallel()
	calls := claimCalls()
	for name, c := range map[string]struct {
		folder string
		from   int // the first request behind the look whether it is there, which need not be answered
	}{
		"create request": {zkmodel.RequestsRoot, 2}, "create node": {zkmodel.NodesRoot, 2}, "begin nodes": {zkmodel.LaunchesRoot, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := 0
			for n, refused := c.from, true; refused && !t.Failed(); n++ {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t)
					if prepare := calls[name].prepare; prepare != nil {
						prepare(s)
					}
					if err := s.b.Session().DeleteTree(s.ctx, c.folder); err != nil && !errors.Is(err, recipe.ErrNoNode) {
						t.Fatal(err)
					}
					refused = false
					s.cluster.AtRequest("a", n, func() { refused = true }, zookeeper.Refused)
					err := calls[name].call(s)
					if errors.Is(err, recipe.ErrAuth) {
						told++
					} else if err != nil {
						t.Errorf("request %d is refused, and the caller is told: %v", n, err)
					}
				})
			}
			if told < 2 { // the folder, and what is to be in it
				t.Errorf("%d refusals are told", told)
			}
		})
	}
}

// Mistake: an operator who may not delete a request is told that it is deleted, or the same is asked again for ever; the deletion, and the look
// for what became of it, are refused once.
func TestErasureThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]zookeeper.Fate{"it": zookeeper.Refused, "the look": zookeeper.Unanswered} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := 0
			for n, met := 1, true; met && !t.Failed(); n++ {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, telling)
					met = false
					s.cluster.AtRequest("a", n, func() {
						if met = true; fate == zookeeper.Unanswered {
							s.cluster.AtRequest("a", 1, nil, zookeeper.Refused)
						}
					}, fate)
					err := s.st.EraseRequest(s.ctx, s.r)
					s.cluster.AtRequest("a", 0, nil, zookeeper.Done)
					switch there := s.request() != nil; {
					case errors.Is(err, recipe.ErrAuth) && there == (fate == zookeeper.Refused):
						told++
					case err != nil || there:
						t.Errorf("at request %d: there %t, %v", n, there, err)
					}
				})
			}
			if told != 1 {
				t.Errorf("%d refusals are told, want that of the deletion", told)
			}
		})
	}
}

// Mistake: a node that a job has is deleted, by a mistake of the caller, as something else is below its record.
func TestNodeThatMayNotGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, lone)
		n := s.nodes[0]
		n.State = zkmodel.NodeInUse
		s.must(s.st.SaveNode(s.ctx, s.locks[0], n))
		s.must(s.b.Session().EnsurePath(s.ctx, n.Path()+"/notes"))
		if err := s.st.DeleteNode(s.ctx, s.locks[0], n); !errors.Is(err, zkmodel.ErrTransition) || len(s.known()) != 1 {
			t.Errorf("%d nodes, %v", len(s.known()), err)
		}
	})
}
