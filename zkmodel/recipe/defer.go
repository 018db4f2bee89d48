package recipe

import (
	"context"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// deferTime is how late a Tree shows a change that may wait.
const deferTime = 500 * time.Millisecond

// Defer lets changes of some children of the root, and of all below them, wait
// for up to half a second before they are read: for records that the caller
// changes himself, several times in a moment, and so knows better than the Tree.
// That a node vanished is shown at once. It lasts until Resume, at the longest
// as long as the session.
func (t *Tree) Defer(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.follower; f != nil {
		for _, name := range names {
			f.deferred[name] = true
		}
	}
}

// Resume ends what Defer began, and has what waited read now.
func (t *Tree) Resume(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.follower
	if f == nil {
		return
	}
	for _, name := range names {
		delete(f.deferred, name)
		for n, want := range f.late[name] {
			f.catchOn(n, want)
		}
		delete(f.late, name)
	}
}

// Settled waits as BarrierAll does, but leaves alone what is deferred.
func Settled(ctx context.Context, trees ...*Tree) error {
	return barrier(ctx, trees, (*follower).drainedButLate)
}

// putOff notes that want of the node n at path is to be read later, if it may be.
func (f *follower) putOff(n *treeNode, path string, want Interest) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(path[len(f.tree.root):], "/"), "/")
	if !f.deferred[name] {
		return false
	}
	if len(f.late) == 0 {
		f.session.Clock().AfterFunc(deferTime, func() { f.post(message{change: change{kind: lateEvent}}) })
	}
	if f.late[name] == nil {
		f.late[name] = map[*treeNode]Interest{}
	}
	f.late[name][n] |= want
	return true
}

// mayWait reports whether a change can be put off.
func mayWait(kind zk.EventType) bool {
	return kind == zk.EventNodeDataChanged || kind == zk.EventNodeChildrenChanged
}

// catchUpLate reads all that was put off.
func (f *follower) catchUpLate() {
	for _, nodes := range f.late {
		for n, want := range nodes {
			f.catchOn(n, want)
		}
	}
	clear(f.late)
}

func (f *follower) catchOn(n *treeNode, want Interest) {
	if !n.gone {
		f.enqueue(n, want, f.epoch, true)
	}
}
