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
	name   string
	parent *treeNode
	kids   []*treeNode // sorted by name
	data   []byte
	job    *job // that reads it now or soon

	czxid, mzxid, owner int64
	ctime, mtime        int64 // milliseconds
	version, cversion   int32
	round               uint32 // of the follower that read it last
	loaded              bool   // and so visible
	gone                bool   // from the Tree
}

// kid returns the child name, or nil.
func (n *treeNode) kid(name string) *treeNode {
	if i, ok := n.search(name); ok {
		return n.kids[i]
	}
	return nil
}

func (n *treeNode) search(name string) (int, bool) {
	return slices.BinarySearchFunc(n.kids, name, func(k *treeNode, name string) int {
		return strings.Compare(k.name, name)
	})
}

// addKid returns the child name, new or not.
func (n *treeNode) addKid(name string) *treeNode {
	i, ok := n.search(name)
	if !ok {
		// The same few names stand below thousands of nodes.
		kid := &treeNode{name: unique.Make(name).Value(), parent: n}
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

// setStat keeps what an Entry shows of st.
func (n *treeNode) setStat(st Stat) {
	n.czxid, n.mzxid, n.owner = st.Czxid, st.Mzxid, st.EphemeralOwner
	n.ctime, n.mtime = st.Ctime.UnixMilli(), st.Mtime.UnixMilli()
	n.version, n.cversion = st.Version, st.Cversion
}

// entry returns the node as readers see it.
func (n *treeNode) entry() Entry {
	e := Entry{Data: n.data}
	if n.czxid != 0 {
		e.Stat = Stat{
			Czxid: n.czxid, Mzxid: n.mzxid, EphemeralOwner: n.owner,
			Ctime: time.UnixMilli(n.ctime), Mtime: time.UnixMilli(n.mtime),
			Version: n.version, Cversion: n.cversion,
		}
	}
	e.Stat.NumChildren, e.Stat.DataLength = int32(len(n.kids)), int32(len(n.data))
	return e
}

// The changes below run under the mutex of the Tree.

// applyData stores what was read of n.
func (t *Tree) applyData(n *treeNode, path string, data []byte, st Stat) {
	fresh := !n.loaded || n.mzxid != st.Mzxid || n.czxid != st.Czxid
	n.setStat(st)
	n.data, n.loaded = data, true
	if fresh {
		t.touch(path)
	}
}

// applyChildren makes names the children of n and returns those to be read.
func (t *Tree) applyChildren(n *treeNode, path string, names []string, st Stat) {
	if n.data == nil {
		n.setStat(st) // otherwise it would be newer than the data
	}
	if n.cversion = st.Cversion; !n.loaded {
		n.loaded = true
		t.touch(path)
	}
	slices.Sort(names)
	for _, kid := range slices.Clone(n.kids) {
		if _, ok := slices.BinarySearch(names, kid.name); !ok {
			t.drop(kid, joinPath(path, kid.name))
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
		*n = treeNode{job: n.job} // the root may come back
		return
	}
	if i, ok := n.parent.search(n.name); ok {
		n.parent.kids = slices.Delete(n.parent.kids, i, i+1)
	}
}

// forget tells of the end of n and all below it, the deepest first.
func (t *Tree) forget(n *treeNode, path string) {
	for _, kid := range n.kids {
		t.forget(kid, joinPath(path, kid.name))
	}
	if n.gone = true; n.loaded {
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
