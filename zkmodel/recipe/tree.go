package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"
)

// Interest says what of a node a Tree follows.
type Interest uint8

// The interests, which combine with |.
const (
	// None follows only whether the node exists, as its parent's list of children shows it.
	None Interest = 0
	// Data follows the data of the node.
	Data Interest = 1 << (iota - 1)
	// Children follows the list of its children.
	Children
)

// TreeOptions change what a Tree follows. Each interest in a node costs a watch,
// which takes about 350 bytes of memory here and some at the server.
type TreeOptions struct {
	// Filter says for each path what is followed; nil follows all of everything.
	Filter func(path string) Interest
	// Known names children that are followed although Filter does not follow the
	// list of children of path: those that, by the layout of the tree, are the only
	// ones that matter. They are looked for directly, and the list is watched only
	// while one of them is missing. May be nil.
	Known func(path string) []string
	// Recheck is how soon after a refusal everything is compared with what is there;
	// 0 is five seconds. Without one it is done a hundred times less often.
	Recheck time.Duration
	// Logger receives what went wrong; nil discards it.
	Logger hclog.Logger
}

// Tree follows a part of the ZooKeeper tree and keeps a copy of it in memory,
// from one session to the next. Readers see each node as it was at some moment
// not long ago, and never an older state after a newer one; Barrier makes that
// moment now. All methods are safe for use by several goroutines.
type Tree struct {
	client *Client
	root   string
	opts   TreeOptions
	log    hclog.Logger

	mu       sync.RWMutex
	top      *treeNode
	version  uint64
	unread   map[*treeNode]unread // what is there and could not be read last
	tell     Throttle
	told     bool // of one, and not yet that all can be read again
	subs     map[*Subscription]struct{}
	follower *follower     // of the living session, or nil
	changed  chan struct{} // closed when follower changes
	rounds   uint32
}

// NewTree returns a Tree that follows root and what is below it, over all
// sessions of c, while Run runs. root need not exist.
func NewTree(c *Client, root string, opts TreeOptions) *Tree {
	t := &Tree{
		client: c, root: root, opts: opts, log: opts.Logger,
		subs: map[*Subscription]struct{}{}, changed: make(chan struct{}), unread: map[*treeNode]unread{},
	}
	if t.log == nil {
		t.log = hclog.NewNullLogger()
	}
	t.top = &treeNode{}
	return t
}

// Run follows the tree until ctx ends or the Client is closed, and returns the cause.
// It is to be called once.
func (t *Tree) Run(ctx context.Context) error {
	if err := checkPath(t.root); err != nil {
		return err
	}
	t.tell.Clock = t.client.Clock()
	return t.client.Serve(ctx, func(ctx context.Context, s *Session) error {
		return newFollower(ctx, t, s).run()
	})
}

// interest returns what is followed of the node at path.
func (t *Tree) interest(path string) Interest {
	switch {
	case t.opts.Filter == nil:
		return Data | Children
	case path == t.root:
		return t.opts.Filter(path) | Children
	default:
		return t.opts.Filter(path)
	}
}

// known returns the children of path that are followed without its list.
func (t *Tree) known(path string, interest Interest) []string {
	if t.opts.Known == nil || interest&Children != 0 {
		return nil
	}
	return t.opts.Known(path)
}

// WaitSynced waits until all of the tree has been read in the session that lives.
func (t *Tree) WaitSynced(ctx context.Context) error {
	return t.await(ctx, func(context.Context, *follower) error { return nil }, (*follower).drained)
}

// Barrier waits until the Tree shows all that was committed before the call, by
// whomever: it costs one round trip to ZooKeeper, which may be a loaded server.
func (t *Tree) Barrier(ctx context.Context) error {
	return BarrierAll(ctx, t)
}

// BarrierAll is the Barrier of several trees for the price of one, where they
// share a client.
func BarrierAll(ctx context.Context, trees ...*Tree) error {
	return barrier(ctx, trees, (*follower).drained)
}

// barrier syncs each session once, and then waits with drained for each tree.
func barrier(ctx context.Context, trees []*Tree, drained func(*follower, context.Context) error) error {
	turn, caught := make(chan struct{}, 1), map[*Session]bool{}
	once := func(ctx context.Context, f *follower) error {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-turn }()
		if caught[f.session] {
			return nil
		}
		err := f.session.catchUp(ctx)
		caught[f.session] = err == nil
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range trees {
		g.Go(func() error { return t.await(ctx, once, drained) })
	}
	return g.Wait()
}

// WaitFor waits until the Tree shows all up to the transaction zxid, which a
// Stat names. It costs nothing if our server has told of that transaction already.
func (t *Tree) WaitFor(ctx context.Context, zxid int64) error {
	return t.await(ctx, func(ctx context.Context, f *follower) error {
		seen := f.session.guard.Seen() >= zxid
		if whole, _ := f.session.guard.Restored(); whole && seen {
			return nil
		}
		return f.session.catchUp(ctx)
	}, (*follower).drained)
}

// await waits until all is applied that was known when prepare returned. If the
// session ends in between, it begins anew with the next.
func (t *Tree) await(
	ctx context.Context, prepare func(context.Context, *follower) error, drained func(*follower, context.Context) error,
) error {
	for {
		t.mu.RLock()
		f, changed := t.follower, t.changed
		t.mu.RUnlock()
		if f != nil {
			bound, cancel := bind(ctx, f.ctx)
			err := prepare(bound, f)
			if err == nil {
				err = drained(f, bound)
			}
			cancel()
			over := f.ctx.Err() != nil || errors.Is(err, ErrSessionLost) // the context is a moment late
			if err == nil || ctx.Err() == nil && !over {
				return err
			}
		}
		if ctx.Err() != nil {
			return ended("wait for tree", t.root, context.Cause(ctx))
		}
		select {
		case <-changed:
		case <-t.client.done:
			return fmt.Errorf("wait for tree %s: %w", t.root, ErrClosed)
		case <-ctx.Done():
		}
	}
}

// follow makes f the follower of the Tree, or nil none.
func (t *Tree) follow(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follower = f
	close(t.changed)
	t.changed = make(chan struct{})
}
