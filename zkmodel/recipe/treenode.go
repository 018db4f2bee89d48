package recipe

import (
	"slices"
	"strings"
	"time"
	"unique"
)

// treeNode is a node of a Tree. There may be hundreds of thousands, so it keeps
// neither its path nor what can be computed. The mutex of the Tree guards it.
type treeNode struct {
	label  unique.Handle[string] // its name: the same few stand below thousands of nodes
	parent *treeNode
	kids   []*treeNode // sorted by name
	record *treeRecord // nil unless the data is followed, and read
	round  uint32      // of the follower that read it last
	loaded bool        // and so visible
	failed bool        // could not be read last, and so is visible too: see Entry.Err
	gone   bool        // from the Tree
}

// treeRecord is what was read of a node whose data is followed.
type treeRecord struct {
	data                []byte
	czxid, mzxid, owner int64
	ctime, mtime        int64 // milliseconds
	version, cversion   int32
}

func (n *treeNode) name() string { return n.label.Value() }

// visible reports whether readers see the node: it is there, as far as we know.
func (n *treeNode) visible() bool { return n.loaded || n.failed }

// kid returns the child name, or nil.
func (n *treeNode) kid(name string) *treeNode {
	if i, ok := n.search(name); ok {
		return n.kids[i]
	}
	return nil
}

func (n *treeNode) search(name string) (int, bool) {
	return slices.BinarySearchFunc(n.kids, name, func(k *treeNode, name string) int {
		return strings.Compare(k.name(), name)
	})
}

// addKid returns the child name, new or not.
func (n *treeNode) addKid(name string) *treeNode {
	i, ok := n.search(name)
	if !ok {
		kid := &treeNode{label: unique.Make(name), parent: n}
		n.kids = slices.Insert(n.kids, i, kid)
	}
	return n.kids[i]
}

// find returns the node at path, which begins with root, or nil.
func (n *treeNode) find(root, path string) *treeNode {
	if !within(root, path) {
		return nil
	}
	rest := strings.Trim(path[len(root):], "/")
	if rest == "" {
		return n
	}
	for name := range strings.SplitSeq(rest, "/") {
		if n = n.kid(name); n == nil {
			return nil
		}
	}
	return n
}

// entry returns the node as readers see it.
func (n *treeNode) entry() Entry {
	var e Entry
	if r := n.record; r != nil {
		e.Data = r.data
		e.Stat = Stat{
			Czxid: r.czxid, Mzxid: r.mzxid, EphemeralOwner: r.owner,
			Ctime: time.UnixMilli(r.ctime), Mtime: time.UnixMilli(r.mtime),
			Version: r.version, Cversion: r.cversion, DataLength: int32(len(r.data)),
		}
	}
	e.Stat.NumChildren = int32(len(n.kids))
	return e
}

// The changes below run under the mutex of the Tree.

// applyData stores what was read of n.
func (t *Tree) applyData(n *treeNode, path string, data []byte, st Stat) {
	// After an older snapshot was restored numbers of transactions come again, so their time counts too.
	fresh := !n.loaded || n.record == nil || n.record.mzxid != st.Mzxid || n.record.czxid != st.Czxid ||
		n.record.mtime != st.Mtime.UnixMilli()
	n.loaded = true
	n.record = &treeRecord{
		data: data, czxid: st.Czxid, mzxid: st.Mzxid, owner: st.EphemeralOwner,
		ctime: st.Ctime.UnixMilli(), mtime: st.Mtime.UnixMilli(), version: st.Version, cversion: st.Cversion,
	}
	if fresh {
		t.touch(path)
	}
}

// applyChildren makes names the children of n.
func (t *Tree) applyChildren(n *treeNode, path string, names []string) {
	t.show(n, path)
	slices.Sort(names)
	for _, kid := range slices.Clone(n.kids) {
		if _, ok := slices.BinarySearch(names, kid.name()); !ok {
			t.drop(kid, joinPath(path, kid.name()))
		}
	}
	n.kids = slices.Grow(n.kids, max(0, len(names)-len(n.kids)))
	for _, name := range names {
		n.addKid(name)
	}
}

// drop removes n, which is at path, and all below it.
func (t *Tree) drop(n *treeNode, path string) {
	t.forget(n, path)
	if n.parent == nil {
		*n = treeNode{} // the root may come back
		return
	}
	if i, ok := n.parent.search(n.name()); ok {
		n.parent.kids = slices.Delete(n.parent.kids, i, i+1)
	}
}

// forget tells of the end of n and all below it, the deepest first.
func (t *Tree) forget(n *treeNode, path string) {
	for _, kid := range n.kids {
		t.forget(kid, joinPath(path, kid.name()))
	}
	delete(t.unread, n)
	t.whole()
	if n.gone = true; n.visible() {
		t.touch(path)
	}
}

// show makes n visible.
func (t *Tree) show(n *treeNode, path string) {
	if !n.loaded {
		n.loaded = true
		t.touch(path)
	}
}

// touch notes that the node at path appeared, changed or vanished.
func (t *Tree) touch(path string) {
	t.version++
	for sub := range t.subs {
		sub.add(path)
	}
}
