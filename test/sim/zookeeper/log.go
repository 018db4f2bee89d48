package zookeeper

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// transaction is one entry of the log. Failed requests take a number, too.
type transaction struct {
	zxid, time int64 // milliseconds
	at         time.Time
	code       int32
	changes    []change
	codes      []int32 // of each operation
	failed     bool
	session    *session
	request    *request // that it answers; nil for what servers do by themselves
}

// Transaction is what Committed is told of.
type Transaction struct {
	Zxid    int64
	Session int64
	Client  string // whose connection it came by; "" for what servers do by themselves
	Changes []Change
}

// Change is one step of a transaction. Of Kind, Create, Delete, SetData, SetACL and Check are used.
type Change struct {
	Kind Kind
	Path string
	Data []byte
}

// Kind is what a Change does.
type Kind int32

// The kinds of changes.
const (
	Create  Kind = opCreate
	Delete  Kind = opDelete
	SetData Kind = opSetData
	SetACL  Kind = opSetACL
	Check   Kind = opCheck
)

// leading is the leader that s reaches, nil where there is none with a quorum.
func (c *Cluster) leading(s *server) *server {
	l := c.leader
	if l == nil || !l.up || !c.quorum(l) || s != l && (s.isolated || !s.serving) {
		return nil
	}
	return l
}

// quorum reports whether s and those that it reaches are more than half of all.
func (c *Cluster) quorum(s *server) bool {
	n := 1
	for _, other := range c.servers {
		if other != s && other.up && !other.isolated && !s.isolated {
			n++
		}
	}
	return n > len(c.servers)/2
}

// forward brings a request to the leader.
func (c *Cluster) forward(q *request) {
	c.after(c.hop(q.conn.up.rng), func() { c.propose(q) })
}

// propose makes a request an entry of the log; without a leader, it waits for one as long
// as its server goes on.
func (c *Cluster) propose(q *request) {
	s := q.conn.server
	if q.stint != s.stint {
		return
	}
	if q.code == opSync && s.leads { // it asks nobody whether it still does
		c.synced(q)
		return
	}
	if c.leading(s) == nil {
		s.waiting = append(s.waiting, q)
		return
	}
	switch q.code {
	case opSync:
		q.after = c.base + int64(len(c.log))
		s.syncs = append(s.syncs, q)
		s.checkSyncs(c)
	case opResume:
		c.resume(q)
	default:
		c.commit(c.draft(q))
	}
}

func (s *server) checkSyncs(c *Cluster) {
	for len(s.syncs) > 0 && s.syncs[0].after <= s.next {
		q := s.syncs[0]
		s.syncs = s.syncs[1:]
		c.synced(q)
	}
}

func (c *Cluster) synced(q *request) {
	w := header(q.xid, q.conn.server.tree.zxid, 0)
	w.string(q.body.string())
	c.answer(q.conn, w)
	c.done(q.conn)
}

// done goes on with a connection behind an answer.
func (c *Cluster) done(cn *conn) {
	cn.busy = false
	c.work(cn)
}

// next is an empty transaction with the next number.
func (c *Cluster) next(code int32) *transaction {
	c.zxid++
	now := time.Now()
	return &transaction{zxid: c.zxid, time: now.UnixMilli(), at: now, code: code}
}

// draft decides what becomes of a request.
func (c *Cluster) draft(q *request) *transaction {
	x := c.next(q.code)
	x.request, x.session = q, q.session
	switch {
	case q.code == opBegin:
		x.session = c.begin(q)
		return x
	case q.code == opClose:
		c.end(x)
		return x
	case q.session.ended:
		x.fail(errExpired)
		return x
	case q.session.owner != q.conn.server:
		x.fail(errMoved)
		return x
	}
	d := &draft{tree: c.leader.tree, session: q.session.id, ids: q.ids, seen: map[string]*outline{}}
	for _, o := range q.list {
		if x.failed {
			x.codes = append(x.codes, errInconsistency)
			continue
		}
		ch, code := d.step(o)
		if code == errMarshalling { // no answer for each operation, then
			x.code, x.codes, x.changes, x.failed = opError, []int32{code}, nil, true
			return x
		}
		x.codes = append(x.codes, code)
		x.changes = append(x.changes, ch)
		x.failed = code != 0
	}
	if x.failed {
		x.changes = nil
	}
	return x
}

// fail refuses all operations: the first for a reason, the others since it failed.
func (x *transaction) fail(code int32) {
	x.failed = true
	for range x.request.list {
		x.codes = append(x.codes, code)
		code = errInconsistency
	}
}

// commit appends x to the log. The leader applies it now, the others when they hear of it.
func (c *Cluster) commit(x *transaction) {
	c.log = append(c.log, x)
	if c.opts.Committed != nil {
		c.opts.Committed(x.told())
	}
	c.leader.step(c)
	for _, s := range c.servers {
		if s != c.leader {
			s.follow(c)
		}
	}
	c.trim()
	c.sweep()
}

func (x *transaction) told() Transaction {
	t := Transaction{Zxid: x.zxid}
	if x.session != nil {
		t.Session = x.session.id
	}
	if x.request != nil {
		t.Client = x.request.conn.client
	}
	for _, ch := range x.changes {
		t.Changes = append(t.Changes, Change{Kind(ch.code), ch.path, ch.data})
	}
	return t
}

// trim forgets what all servers have applied.
func (c *Cluster) trim() {
	least := c.base + int64(len(c.log))
	for _, s := range c.servers {
		least = min(least, s.next)
	}
	if least-c.base > 1000 {
		c.log = slices.Clone(c.log[least-c.base:])
		c.base = least
	}
}

// behind reports whether there is something in the log that s has not applied.
func (c *Cluster) behind(s *server) bool { return s.next < c.base+int64(len(c.log)) }

// follow applies what is in the log, each entry some time after it was committed.
func (s *server) follow(c *Cluster) {
	if s.arming || !c.behind(s) {
		return
	}
	s.arming = true
	x := c.log[s.next-c.base]
	stint := s.stint
	c.after(time.Until(x.at.Add(c.hop(s.rng)+s.lag)), func() {
		s.arming = false
		if s.stint == stint && c.behind(s) && c.leading(s) != nil {
			s.step(c)
		}
		if c.leading(s) != nil {
			s.follow(c)
		}
	})
}

// step applies the next entry of the log.
func (s *server) step(c *Cluster) {
	x := c.log[s.next-c.base]
	s.next++
	stats := make([]zk.Stat, len(x.changes))
	for i, ch := range x.changes {
		stat, events := s.tree.apply(ch, x.zxid, x.time)
		stats[i] = stat
		for _, e := range events {
			s.fire(c, e)
		}
	}
	s.tree.zxid = x.zxid
	own := x.request != nil && x.request.conn.server == s && x.request.stint == s.stint
	if x.code == opClose {
		for _, cn := range slices.Clone(s.conns) {
			if cn.session == x.session && (!own || cn != x.request.conn) {
				c.hangUp(cn)
			}
		}
	}
	if own {
		c.finish(x, stats)
	}
	s.checkSyncs(c)
}

// finish answers the request of a transaction, unless a fault wants the answer lost.
func (c *Cluster) finish(x *transaction, stats []zk.Stat) {
	q := x.request
	cn := q.conn
	switch {
	case q.list != nil && c.drops[cn.client] > 0 && !cn.gone:
		c.drops[cn.client]--
		cn.reset()
	case x.code == opBegin:
		c.welcome(cn, x.session)
	case x.code == opClose:
		c.answer(cn, header(q.xid, cn.server.tree.zxid, 0))
		c.hangUp(cn)
	case x.failed && x.codes[0] == errMoved:
		c.hangUp(cn)
	default:
		c.answer(cn, x.result(cn.server.tree.zxid, stats))
	}
	c.done(cn)
}

// result is the answer to a write.
func (x *transaction) result(zxid int64, stats []zk.Stat) *writer {
	if x.code != opMulti {
		w := header(x.request.xid, zxid, x.codes[0])
		if !x.failed {
			outcome(w, x.code, x.changes[0].path, stats[0])
		}
		return w
	}
	w := header(x.request.xid, zxid, 0)
	for i, code := range x.codes {
		if x.failed {
			w.int32(opError)
			w.bool(false)
			w.int32(code)
			w.int32(code)
			continue
		}
		kind := x.request.list[i].code
		w.int32(kind)
		w.bool(false)
		w.int32(0)
		if kind != opCheck {
			outcome(w, kind, x.changes[i].path, stats[i])
		}
	}
	w.int32(-1)
	w.bool(true)
	w.int32(-1)
	return w
}

// outcome writes what one operation has made.
func outcome(w *writer, code int32, path string, stat zk.Stat) {
	switch code {
	case opCreate:
		w.string(path)
	case opCreate2, opCreateContainer, opCreateTTL:
		w.string(path)
		w.stat(stat)
	case opSetData, opSetACL, opCheck:
		w.stat(stat)
	}
}
