package inflight

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"poolkeeper/zkmodel"
)

// tree is a view that shows what was written once it is settled, and notes what it is
// told to follow late.
type tree struct {
	shown   []*zkmodel.Node
	late    map[string]bool // requests and nodes
	settle  func() error
	reading func()
}

func (v *tree) Nodes() []*zkmodel.Node {
	if v.reading != nil {
		v.reading()
	}
	return v.shown
}

func (v *tree) DeferRequest(id string) { v.late["request "+id] = true }

func (v *tree) DeferNodes(ids ...string) {
	for _, id := range ids {
		v.late["node "+id] = true
	}
}

func (v *tree) Resume(requests, nodes []string) {
	for _, id := range requests {
		delete(v.late, "request "+id)
	}
	for _, id := range nodes {
		delete(v.late, "node "+id)
	}
}

func (v *tree) Settle(_ context.Context, requests, nodes []string) error {
	if v.settle != nil {
		if err := v.settle(); err != nil {
			return err
		}
	}
	v.Resume(requests, nodes)
	return nil
}

func newRecords() (*Records, *tree) {
	v := &tree{late: map[string]bool{}}
	return NewRecords(v, hclog.NewNullLogger(), func() {}), v
}

// A node that is let go while the view is read counts still: the view may have
// been read before it showed the node.
func TestNodesThatAreLetGoMeanwhileCount(t *testing.T) {
	t.Parallel()
	r, v := newRecords()
	r.Note(&zkmodel.Node{ID: "0000000001", State: zkmodel.NodeReady})
	v.reading = func() { r.forget(nil, []string{"0000000001"}) }
	if got := r.Nodes(); len(got) != 1 {
		t.Errorf("%d nodes, want the one that was ours", len(got))
	}
	if got := r.Nodes(); len(got) != 0 {
		t.Errorf("%d nodes, want none", len(got))
	}
}

// Whatever the order in which requests are taken, begun, given up and settled: what the
// view follows late is ours, so nobody decides on what it shows of it. A request that is
// dropped while its last write is not shown would be accepted a second time.
func TestWhatIsSeenLateIsOurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, v := newRecords()
		ctx := context.Background()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "request"))
			begun := r.begun[id]
			connected := rapid.IntRange(0, 3).Draw(t, "connection") > 0
			v.settle = func() error {
				if !connected {
					return errors.New("no connection")
				}
				return nil
			}
			switch step := rapid.SampledFrom([]string{"take", "begin", "undo", "drop", "create", "finish", "retire"}).Draw(t, "step"); {
			case step == "take":
				if had := r.Requests()[id]; r.Take(id) == had {
					t.Fatalf("request %s, in our hands: %t, is taken or refused", id, had)
				}
			case step == "begin" && r.Requests()[id] && !begun:
				r.Begin(id)
			case step == "undo" && begun && !r.Mine("n"+id):
				r.Undo(id)
				r.Drop(id)
			case step == "drop":
				r.Drop(id)
			case step == "create" && begun:
				r.Created(&zkmodel.Node{ID: "n" + id})
			case step == "finish" && begun:
				r.Finish(id, "n"+id)
			case step == "retire":
				r.retire(ctx)
			}
			for i := range 4 {
				id := fmt.Sprint(i)
				if v.late["request "+id] && !r.Requests()[id] || v.late["node n"+id] && !r.Mine("n"+id) {
					t.Fatalf("request %s or its node is followed late, and not ours", id)
				}
			}
		}
	})
}

// What is done is let go by the next barrier that succeeds, and somebody is told: one
// that fails must not lose it, or the request stays ours for ever.
func TestWhatIsDoneIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told, broken atomic.Int32
		broken.Store(1)
		v := &tree{late: map[string]bool{}, settle: func() error {
			if broken.Load() == 1 {
				return errors.New("no connection")
			}
			return nil
		}}
		r := NewRecords(v, hclog.NewNullLogger(), func() { told.Add(1) })
		ctx, stop := context.WithCancel(t.Context())
		go r.Retire(ctx)
		r.Take("1")
		r.Begin("1")
		r.Created(&zkmodel.Node{ID: "7"})
		r.Finish("1", "7")
		synctest.Wait()
		if !r.Requests()["1"] || !r.Mine("7") || told.Load() != 0 {
			t.Error("let go although nobody sees how it ended")
		}
		broken.Store(0)
		<-after(2 * ShortPause)
		stop()
		synctest.Wait()
		if r.Requests()["1"] || r.Mine("7") || told.Load() != 1 || len(v.late) != 0 {
			t.Errorf("still ours: %v, told %d times, followed late: %v", r.Requests(), told.Load(), v.late)
		}
	})
}

// At the end of a session the view follows all again: what it went on to show late would
// be decided on by the next session.
func TestEndResumesAll(t *testing.T) {
	t.Parallel()
	r, v := newRecords()
	r.Take("1")
	r.Begin("1")
	r.Created(&zkmodel.Node{ID: "7"})
	if r.End(); len(v.late) != 0 {
		t.Errorf("still followed late: %v", v.late)
	}
}

// Nodes shows our own as we wrote them, and those of others as the view does: else a
// launch under way is counted by what it was before, or twice.
func TestNodesAreShownAsWritten(t *testing.T) {
	t.Parallel()
	r, v := newRecords()
	v.shown = []*zkmodel.Node{{ID: "7", State: zkmodel.NodeInit}, {ID: "8", State: zkmodel.NodeInUse}}
	ours := &zkmodel.Node{ID: "7", State: zkmodel.NodeBuilding}
	r.Note(ours)
	ours.State = zkmodel.NodeReady // not written yet
	r.Note(&zkmodel.Node{ID: "9", State: zkmodel.NodeInit})
	got := map[string]zkmodel.NodeState{}
	for _, n := range r.Nodes() {
		got[n.ID] = n.State
	}
	if len(got) != 3 || len(r.Nodes()) != 3 || got["7"] != zkmodel.NodeBuilding || got["8"] != zkmodel.NodeInUse {
		t.Errorf("nodes are shown as %v", got)
	}
	if v.shown[0].State != zkmodel.NodeInit {
		t.Error("the view's own node was changed")
	}
}
