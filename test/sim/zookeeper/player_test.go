package zookeeper_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe/client"
)

// player is one client of a program.
type player struct {
	t     *testing.T
	addr  string
	dial  func(network, address string) (net.Conn, error)
	conn  *zk.Conn
	done  <-chan zk.Event
	name  string
	wait  time.Duration // of its sessions
	away  bool
	guard *client.Guard

	mu       sync.Mutex
	open     chan struct{} // closed while it may connect
	raw      net.Conn
	link     *client.Link
	events   []string
	heads    []string          // of answers
	restores map[uint32]bool   // requests to restore watches, by whether they are answered
	watches  []<-chan zk.Event // that have not fired
}

// sort of log lines: the sessions have other numbers on each side.
type run struct {
	t       *testing.T
	players []*player
	owners  map[int64]string
	made    string // the last name that a server made
	lines   []string
}

// play has programs played, one after the other, and writes down what is seen.
func play(t *testing.T, addr string, dial func(network, address string) (net.Conn, error), programs [][]step) []string {
	t.Helper()
	r := &run{t: t, owners: map[int64]string{}}
	for i := range clients {
		r.join(&player{t: t, addr: addr, dial: dial, name: fmt.Sprint("c", i), wait: 30 * time.Second})
	}
	for n, list := range programs {
		root := fmt.Sprintf("/p%d", n)
		for i, s := range list {
			r.do(fmt.Sprintf("%d.%d", n, i), root, s)
		}
	}
	for _, p := range r.players {
		r.comeBack(p)
		p.end()
	}
	return r.lines
}

func (r *run) join(p *player) {
	r.players = append(r.players, p)
	r.begin(p)
}

// begin starts a session of a player's.
func (r *run) begin(p *player) {
	p.open, p.guard = make(chan struct{}), client.NewGuard(trusting{}, clock.Clock{})
	close(p.open)
	p.restores, p.watches = map[uint32]bool{}, nil
	conn, done, err := zk.Connect([]string{p.addr}, p.wait, zk.WithDialer(p.connect), zk.WithHostProvider(&oneHost{p.addr}),
		zk.WithEventCallback(p.see), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		r.t.Fatal(err)
	}
	p.conn, p.done = conn, done
	p.await("a session", func() bool { return conn.State() == zk.StateHasSession })
	r.owners[conn.SessionID()] = p.name
}

func (p *player) end() {
	p.conn.Close()
	for range p.done {
	}
}

// await looks for something that others do in a moment.
func (p *player) await(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); pause(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s has waited for %s for 30 s", p.name, what)
		}
	}
}

func (p *player) connect(network, addr string, _ time.Duration) (net.Conn, error) {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	<-open
	raw, err := p.dial(network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw = raw
	p.link = p.guard.Wrap(&tapped{Conn: raw, p: p}, raw, addr, p.wait)
	return p.link, nil
}

// trusting is a session that takes all that servers say. A Guard is between the library and
// its connections, as in our clients: without one, the library has a data race of its own.
type trusting struct{}

func (trusting) Sending() error       { return nil }
func (trusting) Granted(int64) error  { return nil }
func (trusting) Connected(int64)      {}
func (trusting) Broken(string, error) {}

func (p *player) see(e zk.Event) {
	if e.Type == zk.EventSession || e.Type == zk.EventNotWatching {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf("%s %s %s", e.Type, e.State, e.Path))
}

// tapped is a connection of which the heads of answers are noted: they have the numbers
// of transactions, which the library keeps for itself.
type tapped struct {
	net.Conn
	p       *player
	partial []byte
	begun   bool // the first packet was sent
	greeted bool // and answered
}

func (c *tapped) Write(b []byte) (int, error) {
	if c.begun && binary.BigEndian.Uint32(b[8:]) == 101 {
		c.p.mu.Lock()
		c.p.restores[binary.BigEndian.Uint32(b[4:])] = false
		c.p.mu.Unlock()
	}
	c.begun = true
	return c.Conn.Write(b)
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.partial = append(c.partial, b[:n]...)
	for len(c.partial) >= 4 {
		size := int(binary.BigEndian.Uint32(c.partial))
		if len(c.partial) < 4+size {
			break
		}
		if c.greeted {
			c.p.note(c.partial[4 : 4+size])
		}
		c.greeted = true
		c.partial = c.partial[4+size:]
	}
	return n, err
}

func (p *player) note(packet []byte) {
	xid, zxid, code := binary.BigEndian.Uint32(packet), binary.BigEndian.Uint64(packet[4:]), int32(binary.BigEndian.Uint32(packet[12:]))
	if int32(xid) == -2 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, restored := p.restores[xid]; restored {
		p.restores[xid] = true
	}
	p.heads = append(p.heads, fmt.Sprintf("%d:%d", int64(zxid), code))
}

// do lets a player make a step, and all see what came of it.
func (r *run) do(number, root string, s step) {
	p := r.players[s.client]
	var answer string
	sorted := false
	switch s.what {
	case "begin", "end":
		for _, one := range r.players {
			r.comeBack(one)
		}
		if s.what == "begin" {
			_, _ = p.conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		}
		sorted = true
	case "leave":
		p.leave()
	case "return":
		r.comeBack(p)
		sorted = true
	case "break":
		p.leave()
		r.comeBack(p)
		sorted = true
	case "renew":
		r.comeBack(p)
		p.end()
		r.begin(p)
		sorted = true
	default:
		if p.away {
			return
		}
		answer = r.ask(p, root, s)
	}
	line := fmt.Sprintf("%s %s %s %s v%d f%d w%t: %s", number, p.name, s.what, r.where(root, s), s.version, s.flags, s.watch, answer)
	for _, one := range r.players {
		line += one.seen(sorted)
	}
	r.lines = append(r.lines, line)
}

// seen is what a player was told since it was asked last.
func (p *player) seen(sorted bool) string {
	if p.away {
		return ""
	}
	if _, _, err := p.conn.Exists("/"); err != nil {
		p.t.Fatalf("%s looks for the root: %v", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	events, heads := p.events, p.heads
	p.events, p.heads = nil, nil
	if sorted {
		slices.Sort(events)
		slices.Sort(heads)
	}
	p.watches = slices.DeleteFunc(p.watches, func(w <-chan zk.Event) bool {
		select {
		case <-w:
			return true
		default:
			return false
		}
	})
	return fmt.Sprintf("\n    %s %d watches, answers %s, told %s", p.name, len(p.watches), strings.Join(heads, " "), strings.Join(events, ", "))
}

func (p *player) leave() {
	if p.away {
		return
	}
	p.away = true
	p.mu.Lock()
	p.open = make(chan struct{})
	raw := p.raw
	p.mu.Unlock()
	_ = raw.Close()
	p.await("the end of its connection", func() bool { return p.conn.State() != zk.StateHasSession })
}

// comeBack connects again, and waits for the watches.
func (r *run) comeBack(p *player) {
	if !p.away {
		return
	}
	p.away = false
	p.mu.Lock()
	before := len(p.restores)
	close(p.open)
	p.mu.Unlock()
	p.await("its session", func() bool { return p.conn.State() == zk.StateHasSession })
	_, _, _ = p.conn.Exists("/") // behind the answers to the passwords that are sent again
	p.await("its watches", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.watches) > 0 && len(p.restores) == before {
			return false
		}
		for _, answered := range p.restores {
			if !answered {
				return false
			}
		}
		return true
	})
}

type oneHost struct{ addr string }

func (h *oneHost) Init([]string) error  { return nil }
func (h *oneHost) Len() int             { return 1 }
func (h *oneHost) Next() (string, bool) { return h.addr, false }
func (h *oneHost) Connected()           {}

type silent struct{}

func (silent) Printf(string, ...any) {}
