package recipe

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// A server tells of a change only to those who may read the node, and the watch of
// anybody else is gone all the same. Rights are closed and opened without a word, so
// what changed in between is never told. Therefore a follower compares what it holds
// with what is there, by reads without watches: as soon as anything was refused in this
// session, and until nothing is; and without a reason the lists near the root once a
// minute: at rest nothing else is sent but pings. What differs is read and watched again.

const (
	listsEvery = 12          // of the pauses between two looks, how often the lists near the root are compared
	allEvery   = 120         // and how often everything is, without a reason
	checkReads = 8           // nodes of a comparison that are looked at at once
	checkRest  = 20          // a comparison rests this many times as long as it took
	checkLast  = time.Minute // or so long
)

// recheck compares until the session ends.
func (f *follower) recheck() {
	every := f.tree.opts.Recheck
	if every == 0 {
		every = treeRetry
	}
	// A session that begins reads everything, so a refusal then counts as well.
	seen, _ := f.session.refusals.count()
	suspicious := false
	clock := f.session.Clock()
	var next time.Time
	lists, all := clock.Now(), clock.Now()
	for f.ctx.Err() == nil {
		if now, another := f.session.refusals.count(); !suspicious && now == seen {
			f.idle(another, listsEvery*every)
		}
		if clock.Sleep(f.ctx, every) != nil {
			return
		}
		began := clock.Now()
		refused, _ := f.session.refusals.count()
		suspicious = suspicious || refused != seen
		switch {
		case suspicious && !began.Before(next), began.Sub(all) > allEvery*every:
			f.compare(math.MaxInt)
			seen, _ = f.session.refusals.count()
			suspicious = seen != refused
			next = clock.Now().Add(min(checkRest*clock.Since(began), checkLast))
			lists, all = began, began
		case began.Sub(lists) > listsEvery*every:
			f.compare(1)
			lists = began
		}
	}
}

// idle waits for d, or until something is refused.
func (f *follower) idle(refused <-chan struct{}, d time.Duration) {
	timer := f.session.Clock().NewTimer(d)
	defer timer.Stop()
	select {
	case <-refused:
	case <-timer.C:
	case <-f.ctx.Done():
	}
}

// held is what a follower has of a node.
type held struct {
	path   string
	failed bool // it could not be read
	data   bool
	mzxid  int64
	list   bool
	kids   []string
	lacks  []string // known children that are not there
	names  []string // that a list has now,
	err    error    // or why it could not be read
}

// compare has read again what is not as it is held, down to depth below the root;
// above the deepest only lists, which are read together.
func (f *follower) compare(depth int) {
	all := f.holds(depth)
	var lists []Read
	for _, h := range all {
		if h.list {
			lists = append(lists, ReadChildren(h.path))
		}
	}
	results := f.session.ReadMany(f.ctx, lists...)
	var group errgroup.Group
	group.SetLimit(checkReads)
	for _, h := range all {
		if h.list {
			h.names, h.err, results = results[0].Children, results[0].Err, results[1:]
		}
		if !h.data && len(h.lacks) == 0 { // nothing else is read
			f.check(h)
			continue
		}
		group.Go(func() error {
			if f.ctx.Err() == nil {
				f.check(h)
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
}

// holds lists what is held down to depth below the root.
func (f *follower) holds(depth int) []held {
	t := f.tree
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []held
	var walk func(n *treeNode, path string, depth int)
	walk = func(n *treeNode, path string, left int) {
		interest := t.interest(path)
		h := held{path: path, failed: n.failed, list: interest&Children != 0, data: interest&Data != 0 && depth > 1}
		if n.record != nil {
			h.mzxid = n.record.mzxid
		}
		for _, kid := range n.kids {
			h.kids = append(h.kids, kid.name())
		}
		for _, name := range t.known(path, interest) {
			if n.kid(name) == nil && depth > 1 {
				h.lacks = append(h.lacks, name)
			}
		}
		if h.list || h.data || len(h.lacks) > 0 {
			all = append(all, h)
		}
		for _, kid := range n.kids {
			if left > 0 {
				walk(kid, joinPath(path, kid.name()), left-1)
			}
		}
	}
	walk(t.top, t.root, depth)
	return all
}

// check compares one node and has it read again if it differs.
func (f *follower) check(h held) {
	conn, abs := f.session.conn, f.session.abs(h.path)
	differs, want := false, None
	see := func(err error) bool {
		differs = differs || errors.Is(err, ErrNoNode) && (h.mzxid != 0 || len(h.kids) > 0) ||
			errors.Is(err, ErrAuth) && !h.failed // so that readers know
		return err == nil
	}
	seeTheirs := func(err error) bool { return see(f.session.translate("compare", h.path, err)) }
	if h.data && h.failed {
		if _, _, err := conn.Get(abs); seeTheirs(err) {
			differs = true
		}
	} else if h.data {
		if exists, stat, err := conn.Exists(abs); seeTheirs(err) && (!exists && h.mzxid != 0 || exists && stat.Mzxid != h.mzxid) {
			differs = true
		}
	}
	if h.list {
		slices.Sort(h.names)
		if see(h.err) && (h.failed || !slices.Equal(h.names, h.kids)) {
			differs = true
		}
	}
	for _, name := range h.lacks {
		exists, _, err := conn.Exists(joinPath(abs, name))
		if seeTheirs(err) && exists {
			differs, want = true, Children
		}
	}
	if differs {
		f.post(message{change: change{h.path, retryEvent}, want: want})
	}
}

// noteRefusal remembers that err was a refusal of ours, or nothing.
func (s *Session) noteRefusal(err error) {
	if errors.Is(err, zk.ErrNoAuth) {
		s.refusals.add()
	}
}

// refusals counts what rights have kept us from.
type refusals struct {
	mu      sync.Mutex // for moments
	n       int
	another chan struct{} // closed with the next one; made for who asks
}

// count tells how many there were; another is closed with the next one.
func (r *refusals) count() (n int, another <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.another == nil {
		r.another = make(chan struct{})
	}
	return r.n, r.another
}

func (r *refusals) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if r.another != nil {
		close(r.another)
		r.another = nil
	}
}
