package zookeeper

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Owners of nodes that no session has.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56 // the lower bits are milliseconds
)

// node is one znode. Its name stands in its parent's list, at place.
type node struct {
	data                              []byte
	acl                               []zk.ACL
	czxid, mzxid, pzxid, ctime, mtime int64
	version, aversion                 int32
	created                           int32 // children that it has ever had
	owner                             int64
	children                          []string
	place                             int
}

// stat is what clients see of a node. A server counts the creations of children, clients
// creations and deletions.
func (n *node) stat() zk.Stat {
	return zk.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion, Cversion: n.created*2 - int32(len(n.children)),
		EphemeralOwner: max(n.owner, 0), DataLength: int32(len(n.data)), NumChildren: int32(len(n.children)),
	}
}

// tree is what one server has applied of the log.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64][]string // of each session, in the order of their creation
	fleeting   map[string]bool    // containers, and nodes with a time to live
	zxid       int64              // of the last transaction
}

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64][]string{}, fleeting: map[string]bool{}}
	open := zk.WorldACL(zk.PermAll)
	t.nodes["/"] = &node{acl: open, data: []byte{}}
	for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		t.insert(path, &node{acl: open, data: []byte{}})
	}
	config := t.nodes["/zookeeper/config"]
	config.acl, config.aversion = zk.WorldACL(zk.PermRead), -1
	return t
}

// clone is a copy that no change of t reaches. Data and lists of rights are never
// changed in place, and so are shared.
func (t *tree) clone() *tree {
	c := &tree{nodes: make(map[string]*node, len(t.nodes)), ephemerals: map[int64][]string{}, fleeting: map[string]bool{}, zxid: t.zxid}
	for path, n := range t.nodes {
		twin := *n
		twin.children = slices.Clone(n.children)
		c.nodes[path] = &twin
	}
	for id, list := range t.ephemerals {
		c.ephemerals[id] = slices.Clone(list)
	}
	for path := range t.fleeting {
		c.fleeting[path] = true
	}
	return c
}

// parentOf is the path of the node above; that of "/a" is "/".
func parentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 1)]
}

func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func (t *tree) insert(path string, n *node) {
	parent := t.nodes[parentOf(path)]
	n.place = len(parent.children)
	parent.children = append(parent.children, nameOf(path))
	t.nodes[path] = n
}

// remove fills the gap in the parent's list with its last child: a server lists children
// in an order that means nothing, and so does the model.
func (t *tree) remove(path string) {
	at := parentOf(path)
	parent, n := t.nodes[at], t.nodes[path]
	last := len(parent.children) - 1
	if name := parent.children[last]; n.place != last {
		parent.children[n.place] = name
		t.nodes[strings.TrimSuffix(at, "/")+"/"+name].place = n.place
	}
	parent.children[last] = ""
	parent.children = parent.children[:last]
	delete(t.nodes, path)
}

// change is one step of a transaction, as all servers apply it.
type change struct {
	code    int32 // opCreate, opDelete, opSetData, opSetACL or opCheck
	path    string
	data    []byte
	acl     []zk.ACL
	version int32 // that it makes
	owner   int64
}

// event is what becomes of watches at a change.
type event struct {
	kind zk.EventType
	path string
	acl  []zk.ACL // who may not read is not told
}

// apply makes one change. The result is the stat that the answer shows.
func (t *tree) apply(c change, zxid, now int64) (zk.Stat, []event) {
	n := t.nodes[c.path]
	switch c.code {
	case opCreate:
		n = &node{data: c.data, acl: c.acl, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now, owner: c.owner}
		t.insert(c.path, n)
		t.own(c.path, c.owner)
		parent := t.nodes[parentOf(c.path)]
		parent.created++
		parent.pzxid = zxid
		return n.stat(), []event{
			{zk.EventNodeCreated, c.path, c.acl},
			{zk.EventNodeChildrenChanged, parentOf(c.path), parent.acl},
		}
	case opDelete:
		t.remove(c.path)
		t.disown(c.path, n.owner)
		parent := t.nodes[parentOf(c.path)]
		parent.pzxid = zxid
		return zk.Stat{}, []event{
			{zk.EventNodeDeleted, c.path, n.acl},
			{zk.EventNodeChildrenChanged, parentOf(c.path), parent.acl},
		}
	case opSetData:
		n.data, n.version, n.mzxid, n.mtime = c.data, c.version, zxid, now
		return n.stat(), []event{{zk.EventNodeDataChanged, c.path, n.acl}}
	case opSetACL:
		n.acl, n.aversion = c.acl, c.version
	}
	if n == nil {
		return zk.Stat{}, nil
	}
	return n.stat(), nil
}

func (t *tree) own(path string, owner int64) {
	switch {
	case owner > 0:
		t.ephemerals[owner] = append(t.ephemerals[owner], path)
	case owner < 0:
		t.fleeting[path] = true
	}
}

func (t *tree) disown(path string, owner int64) {
	delete(t.fleeting, path)
	if owner <= 0 {
		return
	}
	list := t.ephemerals[owner]
	if i := slices.Index(list, path); i >= 0 {
		t.ephemerals[owner] = slices.Delete(list, i, i+1)
	}
	if len(t.ephemerals[owner]) == 0 {
		delete(t.ephemerals, owner)
	}
}
