package recipe

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// The client library restores its watches after a reconnect with a request that
// names the last transaction it has seen, so that the server reports what was
// missed. But it reads that number while it already takes answers to other
// requests on the new connection: an answer that overtakes it moves the number
// past the missed changes, and they are never reported.
//
// So a link holds the server's answers back until the request has been sent. For
// that there must always be one: each session keeps a watch that never fires,
// its sentinel.

// settleTime is how long a new session waits before its first watch. The library
// looks for watches to restore on the first connection as well, at some moment
// that nobody is told of, and must find none.
const settleTime = 50 * time.Millisecond

// post places the sentinel: a watch for a node that nobody will ever create.
func (s *Session) post(ctx context.Context) error {
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
		return ended("watch", "/", context.Cause(ctx))
	}
	path := s.abs("/sentinel-" + randomHex())
	_, err := read(ctx, s, "watch", path, func() (struct{}, error) {
		_, _, _, err := s.conn.ExistsW(path)
		return struct{}{}, err
	})
	s.posted.Store(err == nil)
	return err
}

// Codes of the requests that a gate knows.
const (
	opAuth       = 100
	opSetWatches = 101
)

// gate holds answers back until watches are being restored. Answers to
// authentication pass: the library awaits them before it sends anything else.
type gate struct {
	once   sync.Once
	opened chan struct{}
	mu     sync.Mutex
	auths  int // requests whose answers have not come
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// open lets all pass from now on.
func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// sent looks at a packet that goes out.
func (g *gate) sent(packet []byte) {
	const codeAt = lengthSize + 4 // behind length and xid
	if len(packet) < codeAt+4 {
		return
	}
	switch binary.BigEndian.Uint32(packet[codeAt:]) {
	case opSetWatches:
		g.open()
	case opAuth:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.auths++
	}
}

// pass returns when an answer may be handed on, or fails if the watches were not
// restored within wait.
func (g *gate) pass(wait time.Duration) error {
	g.mu.Lock()
	if g.auths > 0 {
		g.auths--
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	select {
	case <-g.opened:
		return nil
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-g.opened:
		return nil
	case <-timer.C:
		return net.ErrClosed
	}
}
