package zktest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes TCP connections on to a server until it is told not to. What it
// does applies to connections that are open and to those that come.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed when a field below changes
	up      bool          // passes what clients send
	down    bool          // passes what the server sends
	delay   time.Duration // before each piece is passed on
	closed  bool
	conns   map[net.Conn]struct{}
}

// StartProxy returns a Proxy to target, which ends with the test.
func StartProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start proxy: %v", err)
	}
	p := &Proxy{
		target: target, listener: l, up: true, down: true,
		changed: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr returns the "host:port" to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut holds back everything in both directions; connections stay open, as when a
// cable is pulled.
func (p *Proxy) Cut() { p.set(func() { p.up, p.down = false, false }) }

// CutUp holds back what clients send; they still hear the server.
func (p *Proxy) CutUp() { p.set(func() { p.up, p.down = false, true }) }

// CutDown holds back what the server sends; it still hears its clients.
func (p *Proxy) CutDown() { p.set(func() { p.up, p.down = true, false }) }

// Slow delays every piece of data by d, in each direction.
func (p *Proxy) Slow(d time.Duration) { p.set(func() { p.delay = d }) }

// Heal passes everything on again, also what was held back.
func (p *Proxy) Heal() { p.set(func() { p.up, p.down, p.delay = true, true, 0 }) }

// Break closes all connections that are open; new ones are accepted.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) close() {
	p.set(func() { p.closed = true })
	_ = p.listener.Close()
	p.Break()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve passes data between client and the target until one of them closes.
func (p *Proxy) serve(client net.Conn) {
	defer drop(client)
	if !p.wait(func() bool { return p.up && p.down }) {
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer drop(server)
	if !p.track(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(client, server, func() bool { return p.up }) })
	both.Go(func() { p.pass(server, client, func() bool { return p.down }) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

// track notes open connections, unless the proxy is closed.
func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
	return !p.closed
}

// pass copies from one side to the other while open allows it.
func (p *Proxy) pass(from, to net.Conn, open func() bool) {
	defer drop(from)
	defer drop(to)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.wait(open) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// wait waits until open is true, and for the delay; false means that the proxy is closed.
func (p *Proxy) wait(open func() bool) bool {
	for {
		p.mu.Lock()
		ok, closed, changed, delay := open(), p.closed, p.changed, p.delay
		p.mu.Unlock()
		switch {
		case closed:
			return false
		case ok:
			pause(delay)
			return true
		}
		<-changed
	}
}
