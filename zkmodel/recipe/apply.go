package recipe

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// path returns the path of n.
func (t *Tree) path(n *treeNode) string {
	if n.parent == nil {
		return t.root
	}
	return joinPath(t.path(n.parent), n.name())
}

// fetched is what was read of a node.
type fetched struct {
	data, list *node
}

// fetch reads the node at path and sets watches. It calls the library without a
// goroutine of its own: a worker can wait until the session ends.
func (f *follower) fetch(path string, want Interest) (got fetched, err error) {
	abs, conn := f.session.abs(path), f.session.conn
	if want&Data != 0 {
		data, stat, _, err := conn.GetW(abs)
		if err != nil {
			return got, f.failed(path, err)
		}
		got.data = &node{data: notNil(data), stat: newStat(stat)}
	}
	if want&Children != 0 {
		names, stat, _, err := conn.ChildrenW(abs)
		if err != nil {
			return got, f.failed(path, err)
		}
		got.list = &node{children: names, stat: newStat(stat)}
	}
	return got, nil
}

// failed returns our error for err. Nobody lists the root, so a watch must tell when it comes.
func (f *follower) failed(path string, err error) error {
	if errors.Is(err, zk.ErrNoNode) && path == f.tree.root {
		exists, _, _, werr := f.session.conn.ExistsW(f.session.abs(path))
		switch {
		case werr != nil:
			err = werr
		case exists:
			f.post(message{change: change{path, zk.EventNodeCreated}})
		}
	}
	return f.session.translate("follow", path, err)
}

// apply stores what j brought and enqueues what it revealed.
func (f *follower) apply(j *job, path string, got fetched, err error) {
	t, n := f.tree, j.node
	switch {
	case err == nil:
	case errors.Is(err, ErrNoNode):
		f.vanish(n, path, j.epoch)
		return
	case errors.Is(err, ErrConnectionLost):
		f.enqueue(n, j.want, j.epoch, true) // as again, since j is running
		return
	case errors.Is(err, ErrSessionLost):
		return // the next session reads all again
	default:
		pause := f.tree.miss(n, path, err)
		n.round = f.round // it is read again when the pause is over, and not for each change around it
		f.session.background(func() { f.retry(path, j.want, pause) })
		return
	}
	n.round = f.round
	t.found(n, path)
	if got.data != nil {
		t.applyData(n, path, got.data.data, got.data.stat)
	}
	interest := t.interest(path)
	known := t.known(path, interest)
	if got.list != nil && interest&Children != 0 {
		t.applyChildren(n, path, got.list.children)
		for _, kid := range n.kids {
			f.visit(kid, path, j.epoch)
		}
		return
	}
	for _, name := range known {
		if got.list == nil || slices.Contains(got.list.children, name) {
			f.visit(n.addKid(name), path, j.epoch)
		}
	}
}

// retry has of the node at path read again after a while what could not be read: of
// one whose data alone is followed that may be the list that shows a known child.
func (f *follower) retry(path string, want Interest, pause time.Duration) {
	if f.session.Clock().Sleep(f.ctx, pause) == nil {
		f.post(message{change: change{path, retryEvent}, want: want})
	}
}

// visit enqueues a child of the node at path unless it was read in this session.
func (f *follower) visit(n *treeNode, parent string, epoch uint64) {
	if n.round == f.round {
		return
	}
	path := joinPath(parent, n.name())
	interest := f.tree.interest(path)
	if interest != None {
		if !f.putOff(n, path, interest) {
			f.enqueue(n, interest, epoch, false)
		}
		return
	}
	n.round = f.round
	f.tree.show(n, path)
	for _, name := range f.tree.known(path, interest) {
		f.visit(n.addKid(name), path, epoch)
	}
}

// vanish removes n, which is no more. The list of its parent is read again: it
// may have been read before n was found missing, and after it came back. For a
// known child that list is watched until the child returns; a watch on the parent
// is what ZooKeeper takes away with the parent.
func (f *follower) vanish(n *treeNode, path string, epoch uint64) {
	f.tree.drop(n, path)
	if n.parent != nil {
		f.enqueue(n.parent, Children, epoch, true)
	}
}
