package recipe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// treeWorkers is how many reads a Tree has under way at most.
	treeWorkers = 128
	// treeRetry is when a node is read again that could not be read, for what is no
	// fault of the connection.
	treeRetry = 5 * time.Second
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
}

// message is a change that ZooKeeper told of, or a barrier behind it.
type message struct {
	change
	barrier chan struct{}
}

// waiter is a barrier: it opens when no job of its epoch or an older one is open.
type waiter struct {
	epoch uint64
	done  chan struct{}
}

// job is a node to be read.
type job struct {
	node    *treeNode
	want    Interest
	epoch   uint64
	running bool
	again   Interest // wanted since it runs
	later   uint64   // the epoch of again
}

// retryEvent is the change of a node that could not be read before.
const retryEvent zk.EventType = -100

func newFollower(ctx context.Context, t *Tree, s *Session) *follower {
	return &follower{ctx: ctx, session: s, tree: t, wake: make(chan struct{}, 1), jobs: map[*treeNode]*job{}, open: map[uint64]int{}}
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
func (f *follower) drained(ctx context.Context) error {
	done := make(chan struct{})
	f.post(message{barrier: done})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ended(ctx, "wait for tree", f.tree.root)
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
		if m.barrier != nil {
			f.waiters = append(f.waiters, waiter{f.epoch, m.barrier})
			f.epoch++
			f.settle()
			continue
		}
		if n := f.tree.top.find(f.tree.root, m.path); n != nil {
			f.enqueue(n, f.stale(n, m.change), f.epoch, true)
		}
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
			return kid == nil || !kid.loaded
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

// enqueue makes a job of reading what is wanted of n, or adds to the one that there is.
func (f *follower) enqueue(n *treeNode, want Interest, epoch uint64, hot bool) {
	switch j := f.jobs[n]; {
	case want == None:
	case j == nil:
		j = &job{node: n, want: want, epoch: epoch}
		f.jobs[n] = j
		f.open[epoch]++
		if hot {
			f.hot = append(f.hot, j)
		} else {
			f.cold = append(f.cold, j)
		}
		if f.workers < treeWorkers {
			f.workers++
			f.session.background(f.work)
		}
	case !j.running:
		j.want |= want
	default:
		if j.again == None {
			j.later = epoch
			f.open[epoch]++
		}
		j.again |= want
	}
}

// take returns the next job, or nil.
func (f *follower) take() *job {
	var j *job
	switch {
	case len(f.hot) > 0:
		j, f.hot = f.hot[0], f.hot[1:]
	case len(f.cold) > 0:
		last := len(f.cold) - 1
		j, f.cold[last] = f.cold[last], nil
		f.cold = f.cold[:last]
	default:
		if f.hot, f.cold = nil, nil; len(f.jobs) == 0 {
			f.jobs = map[*treeNode]*job{} // they may have been large
		}
		return nil
	}
	j.running = true
	return j
}

// finish ends j, and makes a new job of what was wanted meanwhile.
func (f *follower) finish(j *job) {
	delete(f.jobs, j.node)
	if j.again != None {
		if !j.node.gone {
			f.enqueue(j.node, j.again, j.later, true)
		}
		f.done(j.later)
	}
	f.done(j.epoch)
}

// done counts one job of epoch as done.
func (f *follower) done(epoch uint64) {
	if f.open[epoch]--; f.open[epoch] == 0 {
		delete(f.open, epoch)
		f.settle()
	}
}

// settle opens the barriers before which no job is left.
func (f *follower) settle() {
	if len(f.waiters) == 0 {
		return
	}
	oldest := f.epoch
	for epoch := range f.open {
		oldest = min(oldest, epoch)
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(w waiter) bool {
		if w.epoch < oldest {
			close(w.done)
		}
		return w.epoch < oldest
	})
}

// work does jobs until there are none.
func (f *follower) work() {
	t := f.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { f.workers-- }()
	for f.ctx.Err() == nil {
		j := f.take()
		if j == nil {
			return
		}
		path, want := t.path(j.node), j.want
		t.mu.Unlock()
		got, err := f.fetch(path, want)
		t.mu.Lock()
		if f.round == t.rounds && !j.node.gone && f.ctx.Err() == nil {
			f.apply(j, path, got, err)
		}
		f.finish(j)
	}
}

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
	return translate("follow", path, err)
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
	default:
		t.log.Warn("cannot follow a node", "path", path, "error", err)
		f.session.background(func() { f.retry(path) })
		return
	}
	n.round = f.round
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

// retry has the node at path read again after a while.
func (f *follower) retry(path string) {
	timer := time.NewTimer(treeRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
		f.post(message{change: change{path, retryEvent}})
	case <-f.ctx.Done():
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
		f.enqueue(n, interest, epoch, false)
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
