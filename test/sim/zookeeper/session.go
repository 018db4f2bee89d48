package zookeeper

import (
	"fmt"
	"slices"
	"time"
)

// sweepEvery is how often a leader looks for containers that are of no more use.
const sweepEvery = time.Minute

// session is what the leader knows of one.
type session struct {
	id       int64
	password string
	client   string
	timeout  time.Duration
	owner    *server // that the client is connected to
	deadline time.Time
	answered time.Time // when a server last heard the client, whether or not the leader knows
	ended    bool
}

// Trusted reports whether the client of a session that has ended may believe in it still: for a
// session's time after a server has answered it. That server may have been cut off from the leader,
// and goes on answering for SyncLimit ticks, while the leader hears nothing.
func (c *Cluster) Trusted(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.over[id]
	return s != nil && time.Since(s.answered) <= s.timeout
}

// begin makes the session that q asks for.
func (c *Cluster) begin(q *request) *session {
	c.begun++
	asked := time.Duration(q.hello.timeout) * time.Millisecond
	s := &session{
		id:       int64(q.conn.server.number)<<56 | int64(c.opts.Seed&0xffffff)<<24 | c.begun,
		password: fmt.Sprintf("%016x", c.opts.Seed+uint64(c.begun)),
		client:   q.conn.client,
		timeout:  min(max(asked, c.opts.MinTimeout), c.opts.MaxTimeout),
		owner:    q.conn.server,
	}
	c.sessions[s.id] = s
	c.heard(s)
	c.watch(s)
	return s
}

// resume goes on with a session on another connection, or says that it is over. The old
// connection to this server ends; one to another server will learn of it.
func (c *Cluster) resume(q *request) {
	cn := q.conn
	for _, old := range slices.Clone(cn.server.conns) {
		if old != cn && old.session != nil && old.session.id == q.hello.session {
			c.hangUp(old)
		}
	}
	s := c.sessions[q.hello.session]
	if s == nil || s.password != q.hello.password {
		c.welcome(cn, nil)
		return
	}
	s.owner = cn.server
	c.heard(s)
	c.welcome(cn, s)
	c.done(cn)
}

// welcome answers the first packet; no session is one that has expired.
func (c *Cluster) welcome(cn *conn, s *session) {
	w := &writer{0, 0, 0, 0}
	w.int32(0)
	if s == nil {
		w.int32(0)
		w.int64(0)
		w.buffer(make([]byte, 16))
		c.answer(cn, w)
		c.hangUp(cn)
		return
	}
	cn.session = s
	w.int32(int32(s.timeout / time.Millisecond))
	w.int64(s.id)
	w.buffer([]byte(s.password))
	c.answer(cn, w)
}

// touch notes that the client of a session was heard. A follower tells the leader of all
// that it has heard twice a tick, and of what it could not tell when it reaches it again.
func (s *server) touch(c *Cluster, heard *session) {
	if heard == nil {
		return
	}
	heard.answered = time.Now()
	switch {
	case s == c.leader && c.leading(s) == s:
		c.heard(heard)
	default:
		s.touched[heard] = true
		s.report(c)
	}
}

func (s *server) report(c *Cluster) {
	if s.reporting || len(s.touched) == 0 {
		return
	}
	s.reporting = true
	c.after(c.opts.Tick/2, func() {
		s.reporting = false
		if c.leading(s) != nil {
			for one := range s.touched {
				c.heard(one)
			}
			clear(s.touched)
		}
		s.report(c)
	})
}

// heard moves the end of a session, to the end of a tick.
func (c *Cluster) heard(s *session) {
	s.answered = latest(s.answered, time.Now())
	s.deadline = time.Now().Add(s.timeout).Truncate(c.opts.Tick).Add(c.opts.Tick)
}

// watch ends a session when its time is over.
func (c *Cluster) watch(s *session) {
	c.after(time.Until(s.deadline), func() {
		switch {
		case s.ended:
			return
		case c.leader == nil || c.leading(c.leader) == nil:
			s.deadline = latest(s.deadline, time.Now().Add(c.opts.Tick))
		case !time.Now().Before(s.deadline):
			c.expire(s)
			return
		}
		c.watch(s)
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (c *Cluster) expire(s *session) {
	x := c.next(opClose)
	x.session = s
	c.end(x)
	c.commit(x)
}

// end makes x the end of its session: its ephemeral nodes go, in any order.
func (c *Cluster) end(x *transaction) {
	x.session.ended = true
	c.over[x.session.id] = x.session
	delete(c.sessions, x.session.id)
	for _, path := range c.leader.tree.ephemerals[x.session.id] {
		x.changes = append(x.changes, change{code: opDelete, path: path})
	}
	c.rng.Shuffle(len(x.changes), func(i, j int) { x.changes[i], x.changes[j] = x.changes[j], x.changes[i] })
}

// sweep deletes containers that have become empty, and nodes whose time is over, now and then.
func (c *Cluster) sweep() {
	if c.sweeping || len(c.leader.tree.fleeting) == 0 {
		return
	}
	c.sweeping = true
	c.after(sweepEvery, func() {
		c.sweeping = false
		if c.leader == nil || c.leading(c.leader) == nil {
			return
		}
		t := c.leader.tree
		var due []string
		for path := range t.fleeting {
			n := t.nodes[path]
			ttl := time.Duration(n.owner&(1<<40-1)) * time.Millisecond
			used := n.owner == containerOwner && n.created > 0
			over := n.owner != containerOwner && time.Now().UnixMilli() > n.mtime+ttl.Milliseconds()
			if len(n.children) == 0 && (used || over) {
				due = append(due, path)
			}
		}
		slices.Sort(due)
		for _, path := range due {
			x := c.next(opDelete)
			x.changes = []change{{code: opDelete, path: path}}
			c.commit(x)
		}
		c.sweep()
	})
}
