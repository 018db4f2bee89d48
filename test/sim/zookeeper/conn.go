package zookeeper

import (
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

// conn is one connection. Its methods are the client's end, a net.Conn; the other fields
// belong to the server. All is guarded by the cluster's mutex.
type conn struct {
	cluster *Cluster
	server  *server
	client  string // whose connection it is, for faults
	up      pipe
	down    pipe

	unsent   []byte // of a packet that is not complete
	readable []byte
	ended    error         // what a read meets behind readable
	closed   bool          // by the client
	until    time.Time     // deadline of reads; zero is none
	ready    chan struct{} // has something when a read has reason to look again
	alarm    *time.Timer   // that gives it a reason at alarmAt: at the deadline, or before it was moved
	alarmAt  time.Time

	session *session // once a server has granted it
	ids     []identity
	queue   []*request
	busy    bool // the head of the queue was taken, and is not answered
	gone    bool // the server has given it up
	data    map[string]struct{}
	child   map[string]struct{}
}

// pipe is one direction: packets come in the order in which they were sent, each some
// time after it was. Its delays are its own draws, so that they do not depend on others.
type pipe struct {
	rng    *rand.Rand
	queue  []packet
	last   time.Time
	armed  bool
	passes func() bool
	next   func() // delivers the first packet
}

type packet struct {
	due     time.Time
	deliver func()
}

// send has deliver called, with the mutex held, when the packet arrives.
func (c *Cluster) send(p *pipe, delay time.Duration, deliver func()) {
	due := time.Now().Add(delay + c.hop(p.rng))
	if !due.After(p.last) {
		due = p.last.Add(1)
	}
	p.last = due
	p.queue = append(p.queue, packet{due, deliver})
	c.pump(p)
}

// pump delivers what has arrived, unless it is held up; who ends that calls pump.
func (c *Cluster) pump(p *pipe) {
	if p.armed || len(p.queue) == 0 {
		return
	}
	p.armed = true
	if p.next == nil {
		p.next = func() { c.deliver(p) }
	}
	c.after(time.Until(p.queue[0].due), p.next)
}

// deliver hands over the packet whose time has come, unless it is held up.
func (c *Cluster) deliver(p *pipe) {
	p.armed = false
	if len(p.queue) == 0 || !p.passes() {
		return
	}
	head := p.queue[0]
	p.queue[0] = packet{}
	p.queue = p.queue[1:]
	head.deliver()
	c.pump(p)
}

var _ net.Conn = (*conn)(nil)

// wake has a read look again.
func (cn *conn) wake() {
	select {
	case cn.ready <- struct{}{}:
	default: // it has reason already
	}
}

// Read implements net.Conn.
func (cn *conn) Read(p []byte) (int, error) {
	for {
		n, err := cn.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		<-cn.ready
	}
}

// take reads what is there. If something is left for another read, that need not wait.
func (cn *conn) take(p []byte) (n int, err error) {
	cn.cluster.mu.Lock()
	defer cn.cluster.mu.Unlock()
	switch {
	case cn.closed:
		err = net.ErrClosed
	case !cn.until.IsZero() && !time.Now().Before(cn.until):
		err = os.ErrDeadlineExceeded
	case len(cn.readable) > 0:
		n = copy(p, cn.readable)
		cn.readable = cn.readable[n:]
	case cn.ended != nil:
		err = cn.ended
	default:
		cn.arm()
		return 0, nil
	}
	if err != nil || len(cn.readable) > 0 || cn.ended != nil {
		cn.wake()
	}
	return n, err
}

// arm sees to it that a read looks again at the deadline, if there is one. An alarm that comes too early does no harm, so
// a deadline that is moved time and again costs nothing.
func (cn *conn) arm() {
	now := time.Now()
	if cn.until.IsZero() || now.Before(cn.alarmAt) && !cn.until.Before(cn.alarmAt) {
		return
	}
	cn.alarmAt = cn.until
	if cn.alarm == nil {
		cn.alarm = time.AfterFunc(cn.until.Sub(now), cn.wake)
		return
	}
	cn.alarm.Reset(cn.until.Sub(now))
}

// noAlarm is for a connection whose reads have an end.
func (cn *conn) noAlarm() {
	if cn.alarm != nil {
		cn.alarm.Stop()
	}
}

// Write implements net.Conn. It never waits: the network holds what a server does not take.
func (cn *conn) Write(p []byte) (int, error) {
	c := cn.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case cn.closed:
		return 0, net.ErrClosed
	case cn.ended != nil:
		return 0, syscall.EPIPE
	}
	sent := p
	if len(cn.unsent) > 0 {
		sent = append(cn.unsent, p...)
	}
	for len(sent) >= 4 {
		r := reader{p: sent}
		size := int(r.int32())
		if size < 0 || size > maxPacket {
			c.send(&cn.up, 0, func() { c.hangUp(cn) })
			return len(p), nil
		}
		if len(r.p) < size {
			break
		}
		packet := slices.Clone(r.p[:size])
		sent = sent[4+size:]
		c.send(&cn.up, 0, func() { c.receive(cn, packet) })
	}
	cn.unsent = slices.Clone(sent)
	return len(p), nil
}

// Close implements net.Conn.
func (cn *conn) Close() error {
	c := cn.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if cn.closed {
		return net.ErrClosed
	}
	cn.closed = true
	cn.noAlarm()
	cn.wake()
	c.send(&cn.up, 0, func() { c.giveUp(cn) })
	return nil
}

// reset ends a connection at once, with all that is on its way.
func (cn *conn) reset() {
	cn.up.queue, cn.down.queue = nil, nil
	if cn.ended == nil {
		cn.ended = syscall.ECONNRESET
		cn.noAlarm()
		cn.wake()
	}
	cn.cluster.giveUp(cn)
}

// arrive hands bytes to the client.
func (cn *conn) arrive(p []byte) {
	if cn.ended == nil {
		cn.readable = append(cn.readable, p...)
		cn.wake()
	}
}

// hangUp ends the connection from the server's side, behind what was sent before.
func (c *Cluster) hangUp(cn *conn) {
	if cn.gone {
		return
	}
	c.giveUp(cn)
	c.send(&cn.down, 0, func() {
		if cn.ended == nil {
			cn.ended = io.EOF
			cn.wake()
		}
	})
}

// SetReadDeadline implements net.Conn.
func (cn *conn) SetReadDeadline(t time.Time) error {
	cn.cluster.mu.Lock()
	defer cn.cluster.mu.Unlock()
	if cn.closed {
		return net.ErrClosed
	}
	cn.until = t
	if !t.IsZero() && !t.After(time.Now()) {
		cn.wake()
		return nil
	}
	cn.arm()
	return nil
}

// SetWriteDeadline implements net.Conn.
func (cn *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (cn *conn) SetDeadline(t time.Time) error { return cn.SetReadDeadline(t) }

// LocalAddr implements net.Conn.
func (cn *conn) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0"))
}

// RemoteAddr implements net.Conn.
func (cn *conn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(cn.server.addr()))
}
