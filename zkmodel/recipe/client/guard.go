package client

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"poolkeeper/configs/clock"
)

// ErrPacket says that a server sent what is no packet.
var ErrPacket = errors.New("server error")

// Session is what a Guard asks and tells, from the goroutines of the library.
type Session interface {
	// Sending is asked before a packet goes out; an error stops it.
	Sending() error
	// Granted is asked about the session that a server grants; an error refuses it.
	Granted(id int64) error
	// Connected is told that a server has it: Timeout and Left know of that.
	Connected(id int64)
	// Broken is told the error that ended a connection.
	Broken(addr string, err error)
}

// Guard is what is known of one session over all its connections: for how long it can be
// trusted, which transaction it has seen last, and whether its watches stand. Its methods
// are safe for use by several goroutines.
type Guard struct {
	session Session
	clock   clock.Clock
	lease   lease
	rewatch *rewatch
	zxid    atomic.Int64
	links   atomic.Int64
}

// NewGuard makes the Guard of a session that has no connection yet.
func NewGuard(s Session, c clock.Clock) *Guard {
	return &Guard{session: s, clock: c, rewatch: newRewatch()}
}

// Wrap begins a connection: the library gets the Link instead of conn, which may be TLS
// over raw. A server that is silent for maxWait while it opens is given up.
func (g *Guard) Wrap(conn, raw net.Conn, addr string, maxWait time.Duration) *Link {
	g.lease.restart()
	seen := g.zxid.Load()
	return newLink(conn, raw, addr, maxWait, seen, g.rewatch.restart(seen), g)
}

// Timeout is the time-out that the server granted; 0 before it did.
func (g *Guard) Timeout() time.Duration {
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	return g.lease.timeout
}

// Left is how long from now the session can be trusted without another word from a
// server; before the first connection, for ever.
func (g *Guard) Left(now time.Time) time.Duration { return g.lease.left(now) }

// Links is how many connections have served the session so far.
func (g *Guard) Links() int64 { return g.links.Load() }

// Seen is the last transaction that servers told of.
func (g *Guard) Seen() int64 { return g.zxid.Load() }

// Restored reports whether all watches stand, and a channel that is closed when that changes.
func (g *Guard) Restored() (whole bool, changed <-chan struct{}) { return g.rewatch.state() }

// sending implements tap.
func (g *Guard) sending(packet []byte) error {
	if err := g.session.Sending(); err != nil {
		return err
	}
	g.lease.send(g.clock.Now())
	g.rewatch.sent(packet)
	return nil
}

// connected implements tap. What is refused is no word of a server about our session, and
// grants it no time.
func (g *Guard) connected(id int64, timeout time.Duration) error {
	if err := g.session.Granted(id); err != nil {
		return err
	}
	g.links.Add(1)
	g.lease.answer()
	g.lease.grant(timeout)
	g.session.Connected(id)
	return nil
}

// answered implements tap.
func (g *Guard) answered(xid uint32, zxid int64) {
	g.lease.answer()
	if zxid > g.zxid.Load() {
		g.zxid.Store(zxid) // one goroutine reads a link, and one link is open at a time
	}
	g.rewatch.answered(xid)
}

// broken implements tap.
func (g *Guard) broken(addr string, err error) { g.session.Broken(addr, err) }
