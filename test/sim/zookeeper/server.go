package zookeeper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// server is one server of the cluster: what it has applied of the log, and who is
// connected to it.
type server struct {
	number    int // from 1
	tree      *tree
	next      int64 // the place in the log that it applies next
	arming    bool  // a timer runs for that
	lag       time.Duration
	up        bool // the process runs
	isolated  bool // from other servers; clients reach it
	serving   bool // part of a quorum, as far as it knows
	stint     int  // counts its ends of serving
	epoch     int64
	conns     []*conn
	data      map[string][]*conn // who watches
	child     map[string][]*conn
	waiting   []*request // for a leader
	syncs     []*request // until what was committed before them is applied
	touched   map[*session]bool
	reporting bool // a timer runs to tell the leader of them
	leads     bool // as far as it knows
	rng       *rand.Rand
}

func newServer(number int, seed uint64) *server {
	return &server{
		number: number, tree: newTree(), up: true, rng: rand.New(rand.NewPCG(seed, uint64(number))),
		data: map[string][]*conn{}, child: map[string][]*conn{}, touched: map[*session]bool{},
	}
}

func (s *server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.number) }

// request is what a client asked.
type request struct {
	conn    *conn
	session *session
	ids     []identity // whom the client had proven to be
	xid     int32
	code    int32
	body    reader
	list    []operation // of a write
	hello   hello       // of a first packet
	stint   int         // of the server that took it
	after   int64       // of a sync: the place in the log that it waits for
}

// hello is the first packet of a connection.
type hello struct {
	seen     int64
	timeout  int32
	session  int64
	password string
}

// receive takes a packet that has come.
func (c *Cluster) receive(cn *conn, p []byte) {
	if cn.gone {
		return
	}
	r := reader{p: p}
	if cn.ids == nil {
		cn.ids = []identity{loopback}
		r.int32()
		h := hello{r.int64(), r.int32(), r.int64(), string(r.buffer())}
		// A server that is behind what the client has seen sends it to another one.
		if r.bad || !cn.server.serving || h.seen > cn.server.tree.zxid {
			c.hangUp(cn)
			return
		}
		q := &request{conn: cn, code: opResume, hello: h, stint: cn.server.stint}
		if h.session == 0 {
			q.code = opBegin
		}
		cn.queue = append(cn.queue, q)
		c.work(cn)
		return
	}
	q := &request{conn: cn, xid: r.int32(), code: r.int32(), ids: cn.ids, stint: cn.server.stint}
	q.body = r
	if r.bad {
		c.hangUp(cn)
		return
	}
	if q.code != opPing {
		c.traffic.Requests++
		c.traffic.Bytes += 4 + len(p)
	}
	cn.server.touch(c, cn.session)
	if q.code == opAuth { // not in turn: a server looks at it when it comes
		c.authenticate(cn, q)
		return
	}
	if c.stopped(cn, q) {
		return
	}
	cn.queue = append(cn.queue, q)
	c.work(cn)
}

func (c *Cluster) authenticate(cn *conn, q *request) {
	q.body.int32()
	scheme, login := q.body.string(), string(q.body.buffer())
	if scheme != "digest" && scheme != "ip" {
		c.answer(cn, header(q.xid, 0, errAuthFailed))
		c.hangUp(cn)
		return
	}
	if id := digestOf(login); scheme == "digest" && !slices.Contains(cn.ids, id) {
		cn.ids = append(slices.Clone(cn.ids), id)
	}
	c.answer(cn, header(q.xid, 0, 0))
}

// work goes on with the queue of a connection: one request after the other, so that each
// sees what those before it did. What a server has taken it does, also when the connection
// is gone.
func (c *Cluster) work(cn *conn) {
	for !cn.busy && len(cn.queue) > 0 {
		q := cn.queue[0]
		cn.queue = cn.queue[1:]
		if q.code != opBegin && q.code != opResume && q.session == nil {
			if q.session = cn.session; q.session == nil {
				return // the session was refused
			}
		}
		q.prepare()
		if q.list != nil || slices.Contains([]int32{opBegin, opResume, opClose, opSync}, q.code) {
			cn.busy = true
			c.forward(q)
			continue
		}
		if !cn.gone {
			cn.server.read(c, q)
		}
	}
}

// prepare reads the operations of a write. One that cannot be read takes a number, too.
func (q *request) prepare() {
	ok := true
	switch q.code {
	case opMulti:
		q.list, ok = readMulti(&q.body)
		q.list = append([]operation{}, q.list...)
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opCheck:
		var o operation
		o, ok = readOperation(&q.body, q.code)
		q.list = []operation{o}
	case opReconfig:
		q.list = []operation{{code: opReconfig}}
	}
	if !ok {
		q.code, q.list = opError, []operation{{code: opError}}
	}
}

// read answers what a server answers by itself.
func (s *server) read(c *Cluster, q *request) {
	w := header(q.xid, s.tree.zxid, 0)
	var code int32
	switch q.code {
	case opPing:
	case opExists, opGetData, opGetChildren, opGetChildren2:
		code = s.look(q, w, q.code)
	case opMultiRead:
		s.lookAll(q, w)
	case opGetACL:
		code = s.rights(q, w)
	case opSetWatches:
		s.rewatch(c, q)
	default:
		code = errUnimplemented
	}
	if q.body.bad {
		code = errMarshalling
	}
	if code != 0 {
		w = header(q.xid, s.tree.zxid, code)
	}
	c.answer(q.conn, w)
}

// look reads a node, and leaves a watch behind when it is asked to. That a node exists is
// no secret; a watch for one that does not stands with those for data.
func (s *server) look(q *request, w *writer, what int32) int32 {
	path, watch := q.body.string(), q.body.bool()
	if strings.Contains(path, "\x00") {
		return errBadArguments
	}
	n := s.tree.nodes[path]
	if what == opExists && watch {
		q.conn.watch(s.data, q.conn.data, path)
	}
	switch {
	case n == nil:
		return errNoNode
	case what == opExists:
		w.stat(n.stat())
		return 0
	case !allowed(n.acl, zk.PermRead, q.ids):
		return errNoAuth
	case what == opGetData:
		if watch {
			q.conn.watch(s.data, q.conn.data, path)
		}
		w.buffer(n.data)
	default:
		if watch {
			q.conn.watch(s.child, q.conn.child, path)
		}
		w.strings(n.children)
	}
	if what != opGetChildren {
		w.stat(n.stat())
	}
	return 0
}

// lookAll does several reads. One that fails leaves the others alone.
func (s *server) lookAll(q *request, w *writer) {
	for {
		what, done := q.body.int32(), q.body.bool()
		q.body.int32()
		if done || q.body.bad {
			break
		}
		one := &writer{}
		if code := s.look(q, one, what); code != 0 {
			w.int32(opError)
			w.bool(false)
			w.int32(code)
			w.int32(code)
			continue
		}
		w.int32(what)
		w.bool(false)
		w.int32(0)
		*w = append(*w, *one...)
	}
	w.int32(-1)
	w.bool(true)
	w.int32(-1)
}

// rights answers getACL: passwords are shown to those who may change them.
func (s *server) rights(q *request, w *writer) int32 {
	n := s.tree.nodes[q.body.string()]
	switch {
	case n == nil:
		return errNoNode
	case !allowed(n.acl, zk.PermRead|zk.PermAdmin, q.ids):
		return errNoAuth
	case allowed(n.acl, zk.PermAdmin, q.ids):
		w.acl(n.acl)
	default:
		w.acl(veiled(n.acl))
	}
	w.stat(n.stat())
	return 0
}

func (cn *conn) watch(all map[string][]*conn, own map[string]struct{}, path string) {
	if _, there := own[path]; there {
		return
	}
	own[path] = struct{}{}
	all[path] = append(all[path], cn)
}

// rewatch restores watches, and tells what was missed since a transaction.
func (s *server) rewatch(c *Cluster, q *request) {
	cn, since := q.conn, q.body.int64()
	data, exist, child := q.body.strings(), q.body.strings(), q.body.strings()
	for _, path := range data {
		switch n := s.tree.nodes[path]; {
		case n == nil:
			c.tell(cn, zk.EventNodeDeleted, path)
		case n.mzxid > since:
			c.tell(cn, zk.EventNodeDataChanged, path)
		default:
			cn.watch(s.data, cn.data, path)
		}
	}
	for _, path := range exist {
		if s.tree.nodes[path] != nil {
			c.tell(cn, zk.EventNodeCreated, path)
		} else {
			cn.watch(s.data, cn.data, path)
		}
	}
	for _, path := range child {
		switch n := s.tree.nodes[path]; {
		case n == nil:
			c.tell(cn, zk.EventNodeDeleted, path)
		case n.pzxid > since:
			c.tell(cn, zk.EventNodeChildrenChanged, path)
		default:
			cn.watch(s.child, cn.child, path)
		}
	}
}

// fire tells those who watch of e, once each, and forgets their watches.
func (s *server) fire(c *Cluster, e event) {
	var list []*conn
	if e.kind != zk.EventNodeChildrenChanged {
		list = s.data[e.path]
		delete(s.data, e.path)
		for _, cn := range list {
			delete(cn.data, e.path)
		}
	}
	if e.kind == zk.EventNodeChildrenChanged || e.kind == zk.EventNodeDeleted {
		for _, cn := range s.child[e.path] {
			delete(cn.child, e.path)
			if !slices.Contains(list, cn) {
				list = append(list, cn)
			}
		}
		delete(s.child, e.path)
	}
	for _, cn := range list {
		if allowed(e.acl, zk.PermRead, cn.ids) {
			c.tell(cn, e.kind, e.path)
		}
	}
}

func (c *Cluster) tell(cn *conn, kind zk.EventType, path string) {
	w := header(xidEvent, -1, 0)
	w.int32(int32(kind))
	w.int32(int32(zk.StateSyncConnected))
	w.string(path)
	c.traffic.Events++
	c.answer(cn, w)
	later, twice := c.doubles[cn.client]
	if !twice {
		return
	}
	again := func() {
		if !cn.gone {
			c.traffic.Events++
			c.traffic.Doubled++
			c.answer(cn, w)
		}
	}
	if rng := cn.down.rng; later <= 0 || rng.IntN(2) == 0 {
		again()
	} else {
		c.after(time.Duration(rng.Int64N(int64(later))), again)
	}
}

// pong is how long the answer to a ping is; those to some writes are as short.
const pong = 20

func (c *Cluster) answer(cn *conn, w *writer) {
	if cn.gone {
		return
	}
	p := w.packet()
	if len(p) > pong {
		c.traffic.Bytes += len(p)
	}
	c.send(&cn.down, c.slow[cn.client], func() { cn.arrive(p) })
}

// giveUp forgets a connection, with its watches. Requests that were taken are done.
func (c *Cluster) giveUp(cn *conn) {
	if cn.gone {
		return
	}
	cn.gone = true
	s := cn.server
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == cn })
	unwatch(s.data, cn.data, cn)
	unwatch(s.child, cn.child, cn)
}

func unwatch(all map[string][]*conn, own map[string]struct{}, cn *conn) {
	for path := range own {
		all[path] = slices.DeleteFunc(all[path], func(other *conn) bool { return other == cn })
		if len(all[path]) == 0 {
			delete(all, path)
		}
	}
	clear(own)
}
