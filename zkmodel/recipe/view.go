package recipe

import (
	"slices"
	"sync"
	"time"
)

// Entry is a node as a Tree knows it.
type Entry struct {
	// Data is nil unless it is followed; it must not be changed.
	Data []byte
	// Stat is that of the data; of a node whose data is not followed it is empty. It
	// has no Pzxid, and NumChildren counts the children that the Tree follows.
	Stat Stat
	// Err says why the node, which is there, cannot be read at present. Data and Stat
	// are then those of the last time that it could, or empty.
	Err error
}

// Version counts the changes that the Tree has seen.
func (t *Tree) Version() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.version
}

// Get returns the node at path.
func (t *Tree) Get(path string) (e Entry, ok bool) {
	t.View(func(v View) { e, ok = v.Get(path) })
	return e, ok
}

// Children returns the names of the children of the node at path, sorted.
func (t *Tree) Children(path string) (names []string) {
	t.View(func(v View) { names = v.Children(path) })
	return names
}

// View calls f with a View of the Tree, which does not change while f runs. f
// should be quick, since changes wait for it, and must not call methods of the Tree.
func (t *Tree) View(f func(v View)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f(View{t})
}

// View is a Tree that stands still.
type View struct{ tree *Tree }

// Version is that of the Tree.
func (v View) Version() uint64 { return v.tree.version }

// node returns the visible node at path, or nil.
func (v View) node(path string) *treeNode {
	n := v.tree.top.find(v.tree.root, path)
	if n == nil || !n.visible() {
		return nil
	}
	return n
}

// Get returns the node at path.
func (v View) Get(path string) (Entry, bool) {
	n := v.node(path)
	if n == nil {
		return Entry{}, false
	}
	e := n.entry()
	e.Err = v.tree.unread[n].err
	return e, true
}

// Children returns the names of the children of the node at path, sorted.
func (v View) Children(path string) []string {
	n := v.node(path)
	if n == nil {
		return nil
	}
	names := make([]string, 0, len(n.kids))
	for _, kid := range n.kids {
		if kid.visible() {
			names = append(names, kid.name())
		}
	}
	return names
}

// Each calls f for each child of the node at path, by name. It takes a fraction
// of the time of a Get for each.
func (v View) Each(path string, f func(Child)) {
	if n := v.node(path); n != nil {
		n.each(v.tree, f)
	}
}

func (n *treeNode) each(t *Tree, f func(Child)) {
	for _, kid := range n.kids {
		if kid.visible() {
			f(Child{kid, t})
		}
	}
}

// Child is a node in a View, found by Each.
type Child struct {
	node *treeNode
	tree *Tree
}

// Name is that of the node, without its parent's.
func (c Child) Name() string { return c.node.name() }

// Entry is the node as Get returns it.
func (c Child) Entry() Entry {
	e := c.node.entry()
	e.Err = c.tree.unread[c.node].err
	return e
}

// Unread reports whether the node cannot be read at present; what is below it is then
// not known either.
func (c Child) Unread() bool { return c.node.failed }

// Mzxid is that of the node's Stat.
func (c Child) Mzxid() int64 {
	if c.node.record == nil {
		return 0
	}
	return c.node.record.mzxid
}

// Mtime is that of the node's Stat, in milliseconds since 1970.
func (c Child) Mtime() int64 {
	if c.node.record == nil {
		return time.Time{}.UnixMilli()
	}
	return c.node.record.mtime
}

// Has reports whether the node has a child called name that has a child for which
// is is true. Where that child cannot be read, it may.
func (c Child) Has(name string, is func(string) bool) bool {
	kid := c.node.kid(name)
	return kid != nil &&
		(kid.failed || slices.ContainsFunc(kid.kids, func(k *treeNode) bool { return k.visible() && is(k.name()) }))
}

// Below is Each for the children of the node's child called name.
func (c Child) Below(name string, f func(Child)) {
	if kid := c.node.kid(name); kid != nil && kid.visible() {
		kid.each(c.tree, f)
	}
}

// Walk calls f for the node at path and all below it, parents first and names in
// order, until f returns false.
func (v View) Walk(path string, f func(path string, e Entry) bool) {
	if n := v.node(path); n != nil {
		v.tree.walk(n, path, f)
	}
}

func (t *Tree) walk(n *treeNode, path string, f func(string, Entry) bool) bool {
	e := n.entry()
	e.Err = t.unread[n].err
	if !f(path, e) {
		return false
	}
	for _, kid := range n.kids {
		if kid.visible() && !t.walk(kid, joinPath(path, kid.name()), f) {
			return false
		}
	}
	return true
}

// Subscription collects the keys of nodes that changed until they are taken, so
// that a slow reader gets each key once and holds up nobody.
type Subscription struct {
	tree *Tree
	key  func(path string) string
	wake chan struct{}

	mu   sync.Mutex
	keys map[string]struct{}
}

// Subscribe returns a Subscription to changes from now on. key maps the path of
// each node that appears, changes its data or vanishes to the key to report, or
// to "" to ignore it; it must be quick. nil reports the paths themselves.
func (t *Tree) Subscribe(key func(path string) string) *Subscription {
	if key == nil {
		key = func(path string) string { return path }
	}
	sub := &Subscription{tree: t, key: key, wake: make(chan struct{}, 1), keys: map[string]struct{}{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs[sub] = struct{}{}
	return sub
}

// add notes a change at path.
func (s *Subscription) add(path string) {
	key := s.key(path)
	if key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = struct{}{}
	select {
	case s.wake <- struct{}{}:
	default: // it is set already
	}
}

// C receives when there are keys to take.
func (s *Subscription) C() <-chan struct{} { return s.wake }

// Take returns the keys that changed since the last Take, sorted. The Tree shows
// a change before its key can be taken.
func (s *Subscription) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, len(s.keys))
	for key := range s.keys {
		keys = append(keys, key)
	}
	s.keys = map[string]struct{}{}
	slices.Sort(keys)
	return keys
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	delete(s.tree.subs, s)
}
