package recipe

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"poolkeeper/configs/planted"
)

// follower keeps a Tree up to date during one session. Events and barriers wait
// in the inbox, so that the goroutine that reads the connection never blocks;
// run makes jobs of them; workers, which exist while there are jobs, do the
// reads and apply what they bring.
type follower struct {
	ctx     context.Context
	session *Session
	tree    *Tree
	round   uint32
	wake    chan struct{}

	inboxMu sync.Mutex
	inbox   []message

	// Guarded by the mutex of the Tree:

	jobs    map[*treeNode]*job
	hot     []*job // because of events; the oldest is next
	cold    []*job // found while reading; the youngest is next, which keeps the list short
	workers int
	epoch   uint64
	open    map[uint64]int // jobs not done, by the epoch that brought them
	waiters []waiter

	deferred map[string]bool                   // children of the root whose changes may wait
	late     map[string]map[*treeNode]Interest // what waits, by child of the root
}

// message is a change that ZooKeeper told of, or a barrier behind it.
type message struct {
	change
	want    Interest // of a node that is read again, beside what is always followed
	barrier chan struct{}
	partial bool // the barrier does not wait for what was put off
}

// Events of our own.
const (
	retryEvent zk.EventType = -100 - iota // a node that could not be read before
	lateEvent                             // the time of what was put off has come
)

func newFollower(ctx context.Context, t *Tree, s *Session) *follower {
	return &follower{
		ctx: ctx, session: s, tree: t, wake: make(chan struct{}, 1), jobs: map[*treeNode]*job{}, open: map[uint64]int{},
		deferred: map[string]bool{}, late: map[string]map[*treeNode]Interest{},
	}
}

// run follows until the session or the context of the Tree ends. Everything that
// the Tree knows from an earlier session is read again, since no watch of it is left.
func (f *follower) run() error {
	t := f.tree
	defer f.session.onChange(t.root, func(c change) { f.post(message{change: c}) })()
	t.mu.Lock()
	t.rounds++
	f.round = t.rounds
	f.enqueue(t.top, t.interest(t.root), 0, false)
	t.mu.Unlock()
	t.follow(f)
	defer t.follow(nil)
	f.session.background(f.recheck)
	for {
		select {
		case <-f.wake:
			f.pump()
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
	}
}

// post puts m into the inbox.
func (f *follower) post(m message) {
	f.inboxMu.Lock()
	defer f.inboxMu.Unlock()
	f.inbox = append(f.inbox, m)
	select {
	case f.wake <- struct{}{}:
	default: // it is set already
	}
}

// drained waits until all is applied that was in the inbox when it was called,
// and all that was found because of it.
func (f *follower) drained(ctx context.Context) error { return f.await(ctx, message{}) }

// drainedButLate is drained, but for what was put off.
func (f *follower) drainedButLate(ctx context.Context) error {
	return f.await(ctx, message{partial: true})
}

func (f *follower) await(ctx context.Context, m message) error {
	m.barrier = make(chan struct{})
	f.post(m)
	select {
	case <-m.barrier:
		return nil
	case <-ctx.Done():
		return ended("wait for tree", f.tree.root, context.Cause(ctx))
	}
}

// pump empties the inbox.
func (f *follower) pump() {
	f.inboxMu.Lock()
	inbox := f.inbox
	f.inbox = nil
	f.inboxMu.Unlock()
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	for _, m := range inbox {
		switch {
		case m.barrier != nil:
			if !m.partial {
				f.catchUpLate()
			}
			f.waiters = append(f.waiters, waiter{f.epoch, m.barrier})
			f.epoch++
			f.settle()
		case m.kind == lateEvent:
			f.catchUpLate()
		default:
			f.changed(m.change, m.want)
		}
	}
}

// changed has read again what c tells of, and also what else is wanted.
func (f *follower) changed(c change, also Interest) {
	n := f.tree.top.find(f.tree.root, c.path)
	if n == nil || planted.Bug("watch") && len(n.kids) > 0 && strings.HasSuffix(c.path, "3/lock") { // that it goes free
		return
	}
	want := f.stale(n, c) | also
	if !mayWait(c.kind) || !f.putOff(n, c.path, want) {
		f.enqueue(n, want, f.epoch, true)
	}
}

// stale returns what is to be read of n because of c.
func (f *follower) stale(n *treeNode, c change) Interest {
	interest := f.tree.interest(c.path)
	switch c.kind {
	case zk.EventNodeDataChanged:
		return interest & Data
	case zk.EventNodeChildrenChanged:
		missing := func(name string) bool {
			kid := n.kid(name)
			return kid == nil || !kid.visible()
		}
		if interest&Children != 0 || slices.ContainsFunc(f.tree.known(c.path, interest), missing) {
			return Children
		}
		return None
	default: // created, deleted and perhaps created again, or to be retried
		if interest == None {
			return Children // the only watch it can have had
		}
		return interest
	}
}
