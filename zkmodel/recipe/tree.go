package recipe

import (
	"context"

	"github.com/hashicorp/go-hclog"
)

// Interest says what of a node a Tree follows.
type Interest uint8

// The interests, which combine with |. With neither, only the existence of the
// node is followed, as its parent's list of children shows it.
const (
	// Data follows the data of the node.
	Data Interest = 1 << iota
	// Children follows the list of its children.
	Children
	// None follows neither.
	None Interest = 0
)

// TreeOptions change what a Tree follows.
type TreeOptions struct {
	// Filter says for each path what is followed; nil follows all of everything.
	Filter func(path string) Interest
	// Logger receives what went wrong; nil discards it.
	Logger hclog.Logger
}

// Entry is a node as a Tree knows it.
type Entry struct {
	// Data is nil unless Data is followed; it must not be changed.
	Data []byte
	// Stat is that of the last read; the count of children may be older.
	Stat Stat
}

// Tree follows a part of the ZooKeeper tree and keeps a copy of it in memory.
type Tree struct{}

// NewTree returns a Tree that follows root and what is below it, over all
// sessions of c, once Run is called.
func NewTree(c *Client, root string, opts TreeOptions) *Tree { return &Tree{} }

// Run follows the tree until ctx ends.
func (t *Tree) Run(ctx context.Context) error { return nil }

// WaitSynced waits until all of the tree has been read for the first time.
func (t *Tree) WaitSynced(ctx context.Context) error { return nil }

// Barrier waits until the Tree shows all that was committed before the call.
func (t *Tree) Barrier(ctx context.Context) error { return nil }

// Version counts the changes that the Tree has seen.
func (t *Tree) Version() uint64 { return 0 }

// Get returns the node at path.
func (t *Tree) Get(path string) (Entry, bool) { return Entry{}, false }

// Children returns the names of the children of the node at path, sorted.
func (t *Tree) Children(path string) []string { return nil }

// View calls f with a view that does not change while f runs. f must be quick,
// and must not call the methods of the Tree.
func (t *Tree) View(f func(v View)) { f(View{}) }

// View is a Tree as it stands at one moment.
type View struct{}

// Version is that of the Tree.
func (v View) Version() uint64 { return 0 }

// Get returns the node at path.
func (v View) Get(path string) (Entry, bool) { return Entry{}, false }

// Children returns the names of the children of the node at path, sorted.
func (v View) Children(path string) []string { return nil }

// Walk calls f for path and all below it, parents first, names in order, until f returns false.
func (v View) Walk(path string, f func(path string, e Entry) bool) {}

// Subscription collects the keys of changed nodes until they are taken.
type Subscription struct{}

// Subscribe returns a Subscription to changes. key maps the path of each changed
// node (created, deleted, or new data) to the key that is reported, or to "" to
// ignore it; nil reports paths. Close ends it.
func (t *Tree) Subscribe(key func(path string) string) *Subscription { return nil }

// C receives a value when there are keys to take.
func (s *Subscription) C() <-chan struct{} { return nil }

// Take returns the keys that changed since the last Take, each once.
func (s *Subscription) Take() []string { return nil }

// Close ends the subscription.
func (s *Subscription) Close() {}
