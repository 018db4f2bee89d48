package recipe

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// A read that a broken connection cut off is repeated before the barrier behind it
// opens, also when the node has changed in the meantime, after the barrier.
func TestBarrierWaitsForRepeatedRead(t *testing.T) {
	tree := NewTree(nil, "/t", TreeOptions{})
	f := newFollower(t.Context(), tree, nil)
	f.workers = treeWorkers // the test does their work
	n := tree.top
	f.enqueue(n, Data, f.epoch, true)
	first := f.take()

	barrier := make(chan struct{})
	f.post(message{barrier: barrier})
	f.post(message{change: change{"/t", zk.EventNodeChildrenChanged}})
	f.pump()
	f.enqueue(n, first.want, first.epoch, true) // as after ErrConnectionLost
	f.finish(first)
	if open(barrier) {
		t.Fatal("the barrier opens before what was to be read is")
	}
	second := f.take()
	if second.want&Data == 0 {
		t.Fatalf("%v is read again, not the data", second.want)
	}
	f.finish(second)
	if !open(barrier) {
		t.Error("the barrier stays closed when all is read")
	}
	if len(f.open) != 0 || len(f.jobs) != 0 {
		t.Errorf("left: %v open, %d jobs", f.open, len(f.jobs))
	}
}

func open(barrier <-chan struct{}) bool {
	select {
	case <-barrier:
		return true
	default:
		return false
	}
}

// A read that is queued because of something after a barrier, and is wanted for
// something before it too, is waited for.
func TestBarrierWaitsForQueuedRead(t *testing.T) {
	tree := NewTree(nil, "/t", TreeOptions{})
	f := newFollower(t.Context(), tree, nil)
	f.workers = treeWorkers // the test does their work
	kid := tree.top.addKid("kid")
	f.enqueue(kid, Data, f.epoch, true)
	first := f.take()
	barrier := make(chan struct{})
	f.post(message{barrier: barrier})
	f.pump()
	f.enqueue(tree.top, Children, f.epoch, true)     // after the barrier
	f.enqueue(tree.top, Children, first.epoch, true) // the kid was not to be found
	f.finish(first)
	if open(barrier) {
		t.Fatal("the barrier opens before the list is read again")
	}
	f.finish(f.take())
	if !open(barrier) {
		t.Error("the barrier stays closed when all is read")
	}
	if len(f.open) != 0 || len(f.jobs) != 0 {
		t.Errorf("left: %v open, %d jobs", f.open, len(f.jobs))
	}
}
