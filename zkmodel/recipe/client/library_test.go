package client

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// provenWith is the library that all of this package was read against, and tried with;
// the sum is that of go.sum.
const (
	provenWith = "github.com/go-zookeeper/zk v1.0.4"
	provenSum  = "h1:DPzxraQx7OrPyXq2phlGlNSIyWEsAox0RJmjTseMV6I="
)

// Mistake: an upgrade, or a fork, of the library whose way to connect, to write, and to
// restore watches nobody has read again. What to do then: read what of its loops
// has changed, run this package's tests and recipe's with it, and name it above.
func TestLibraryIsTheOneThatWasProven(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	mod := read("go.mod")
	if !regexp.MustCompile(`(?m)^(require)?\s*` + regexp.QuoteMeta(provenWith) + `\s*$`).MatchString(mod) {
		t.Errorf("go.mod does not ask for %s", provenWith)
	}
	if regexp.MustCompile(`(?m)^(replace)?\s*github\.com/go-zookeeper/zk\b.*=>`).MatchString(mod) {
		t.Error("go.mod replaces the library")
	}
	if !strings.Contains(read("go.sum"), provenWith+" "+provenSum+"\n") {
		t.Errorf("go.sum has another %s", provenWith)
	}
}

// sent is one call of Write, or what was asked of deadlines.
type sent struct {
	conn   int // counts from 0
	packet []byte
}

// server speaks as much of the protocol as the library needs, and keeps what the library
// did to each connection.
type server struct {
	t        *testing.T
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	conns   []net.Conn // the library's ends
	writes  []sent
	hold    bool // answers no restoring of watches yet
	blank   bool // answers without a transaction, as a Link hands them on
	held    chan func()
	version int64
}

// recorded is a connection of the library's.
type recorded struct {
	net.Conn
	s      *server
	number int
}

func (c recorded) Write(p []byte) (int, error) {
	c.s.mu.Lock()
	c.s.writes = append(c.s.writes, sent{c.number, bytes.Clone(p)})
	c.s.mu.Unlock()
	return c.Conn.Write(p)
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, listener: l, held: make(chan func(), 100)}
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() { s.serve(conn) })
		}
	})
	return s
}

// connect is a session of the library with nothing of ours in between.
func (s *server) connect() (conn *zk.Conn, events <-chan zk.Event, told func() []zk.Event) {
	s.t.Helper()
	var mu sync.Mutex
	var list []zk.Event
	conn, events, err := zk.Connect([]string{s.listener.Addr().String()}, 6*time.Second,
		zk.WithDialer(func(network, addr string, wait time.Duration) (net.Conn, error) {
			c, err := net.DialTimeout(network, addr, wait) //nolint:noctx // the library has no context
			if err != nil {
				return nil, err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.conns = append(s.conns, c)
			return recorded{c, s, len(s.conns) - 1}, nil
		}),
		zk.WithEventCallback(func(ev zk.Event) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, ev)
		}),
		zk.WithMaxConnBufferSize(1<<20+4096), zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		conn.Close()
		s.drop()
		_ = s.listener.Close()
		s.work.Wait()
	})
	return conn, events, func() []zk.Event {
		mu.Lock()
		defer mu.Unlock()
		return append([]zk.Event(nil), list...)
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// drop cuts all connections.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// serve answers what comes on one connection.
func (s *server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if _, err := readFrame(conn); err != nil {
		return
	}
	hello := binary.BigEndian.AppendUint32(nil, 0)
	hello = binary.BigEndian.AppendUint32(hello, 6000)
	hello = binary.BigEndian.AppendUint64(hello, 7)
	hello = append(binary.BigEndian.AppendUint32(hello, 16), make([]byte, 16)...)
	if _, err := conn.Write(frame(hello)); err != nil {
		return
	}
	for {
		p, err := readFrame(conn)
		if err != nil {
			return
		}
		code := binary.BigEndian.Uint32(p[4:])
		s.mu.Lock()
		s.version += 5
		reply := binary.BigEndian.AppendUint64(bytes.Clone(p[:4]), uint64(s.version))
		hold := s.hold && code == opSetWatches
		if s.blank {
			clear(reply[4:12])
		}
		s.mu.Unlock()
		reply = append(reply, 0, 0, 0, 0)
		if code == opExists || code == opGetData || code == opGetChildren2 {
			binary.BigEndian.PutUint32(reply[12:], 1<<32-101) // no such node
		}
		send := func() { _, _ = conn.Write(frame(reply)) }
		if hold {
			s.held <- send
			continue
		}
		if bytes.Contains(p, []byte("/fire")) { // /a appears, right before the answer
			event := binary.BigEndian.AppendUint64([]byte{255, 255, 255, 255}, 1<<64-1)
			event = append(event, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2)
			_, _ = conn.Write(frame(append(event, "/a"...)))
		}
		send()
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, p)
	return p, err
}

// until waits for writes that a test looks for.
func (s *server) until(what string, match func([]sent) bool) []sent {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		s.mu.Lock()
		list := append([]sent(nil), s.writes...)
		s.mu.Unlock()
		if match(list) {
			return list
		}
		if time.Now().After(end) {
			s.t.Fatalf("the library never wrote %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// code is what a written packet asks for.
func code(p []byte) uint32 {
	if len(p) < codeAt+4 {
		return 0
	}
	return binary.BigEndian.Uint32(p[codeAt:])
}

// restores are the requests on one connection that restore watches.
func restores(list []sent, conn int) (found [][]byte) {
	for i, w := range list {
		if first := i == 0 || list[i-1].conn != w.conn; w.conn == conn && !first && code(w.packet) == opSetWatches {
			found = append(found, w.packet)
		}
	}
	return found
}

// Mistakes: a library that writes a packet with two calls, or two with one, of which Link
// would date the wrong bytes; that opens a connection with another packet, or numbers and
// codes requests elsewhere; that says otherwise which reads leave a watch.
func TestLibraryWritesOnePacketACall(t *testing.T) {
	s := newServer(t)
	conn, _, _ := s.connect()
	_, _, _ = conn.Exists("/a")
	_, _, _, _ = conn.ExistsW("/b")
	_, _, _, _ = conn.GetW("/c")
	_, _, _, _ = conn.ChildrenW("/d")
	_, _, _ = conn.Get("/e")
	_, _, _ = conn.Children("/f")
	list := s.until("six reads", func(list []sent) bool { return len(list) >= 7 })
	for i, w := range list {
		if len(w.packet) < lengthSize || int(binary.BigEndian.Uint32(w.packet)) != len(w.packet)-lengthSize {
			t.Errorf("write %d is no whole packet: %x", i, w.packet)
		}
	}
	if p := list[0].packet; len(p) != 48 || binary.BigEndian.Uint64(p[seenInConnect:]) != 0 || binary.BigEndian.Uint32(p[lengthSize+12:]) != 6000 {
		t.Errorf("connect request %x", p)
	}
	for i, want := range []struct {
		code  uint32
		watch byte
	}{{opExists, 0}, {opExists, 1}, {opGetData, 1}, {opGetChildren2, 1}, {opGetData, 0}, {opGetChildren2, 0}} {
		if p := list[i+1].packet; code(p) != want.code || p[len(p)-1] != want.watch {
			t.Errorf("read %d: code %d, last byte %d; want %+v", i, code(p), p[len(p)-1], want)
		}
	}
}

// Mistakes: a library that restores watches at once, all with one request or in larger
// ones, before the answer to the one before, or names the last transaction elsewhere:
// rewatch would hold them for restored too early, and changes would be missed.
func TestLibraryRestoresWatchesOneRequestAfterTheOther(t *testing.T) {
	s := newServer(t)
	conn, _, _ := s.connect()
	const watches, length = 40, 8000 // 320 KB of paths: three requests
	for i := range watches {
		_, _, _, _ = conn.ExistsW("/" + fmt.Sprintf("%0*d", length, i))
	}
	s.mu.Lock()
	last := s.version
	s.hold = true
	s.mu.Unlock()
	s.drop()
	total := 0
	for n := range 3 {
		list := s.until("a request to restore watches", func(list []sent) bool { return len(restores(list, 1)) > n })
		found := restores(list, 1)
		if len(found) != n+1 {
			t.Fatalf("%d requests before the %d. answer", len(found), n+1)
		}
		p := found[n]
		total += len(p)
		if got := int64(binary.BigEndian.Uint64(p[seenInSetWatches:])); got != last {
			t.Errorf("request %d names transaction %d, the last was %d", n, got, last)
		}
		if len(p) > restoreLimit+length {
			t.Errorf("request %d has %d bytes", n, len(p))
		}
		if last := len(p)+length+8 <= restoreLimit; last != (n == 2) {
			t.Errorf("request %d has %d bytes: it looks like the last: %v", n, len(p), last)
		}
		if p := list[len(list)-1].packet; len(p) < 2 {
			t.Error("an empty write")
		}
		select {
		case send := <-s.held:
			send()
		case <-time.After(20 * time.Second):
			t.Fatal("a request to restore watches never came")
		}
	}
	if total < watches*length {
		t.Errorf("%d bytes restored", total)
	}
}

// Mistakes: a library that takes answers without a transaction for errors or forgets what
// it has seen by them (we clear it); that numbers events or pings otherwise, or tells of
// an event after an answer that came behind it (a barrier counts on that); that does not
// close its channel of events as its last act, for which shutdown waits.
func TestLibraryTakesWhatALinkLeavesOfAnswers(t *testing.T) {
	s := newServer(t)
	conn, events, told := s.connect()
	if _, _, _, err := conn.ExistsW("/a"); err != nil {
		t.Fatal(err)
	}
	_, _, _ = conn.Get("/fire")
	if list := told(); list[len(list)-1].Type != zk.EventNodeCreated || list[len(list)-1].Path != "/a" {
		t.Errorf("when an answer was there, the callback knew of %v, not of the event before it", list)
	}
	s.mu.Lock()
	last := s.version
	s.blank = true
	s.mu.Unlock()
	if exists, _, err := conn.Exists("/b"); exists || err != nil {
		t.Errorf("an answer without a transaction: %v %v", exists, err)
	}
	s.drop()
	list := s.until("another connect request", func(list []sent) bool { return len(list) > 0 && list[len(list)-1].conn == 1 })
	for _, w := range list {
		if w.conn == 1 {
			if got := int64(binary.BigEndian.Uint64(w.packet[seenInConnect:])); got != last {
				t.Errorf("the next connection names transaction %d, the last that was told was %d", got, last)
			}
			break
		}
	}
	s.until("a ping", func(list []sent) bool {
		for _, w := range list {
			if len(w.packet) == codeAt+4 && code(w.packet) == opPing && int32(binary.BigEndian.Uint32(w.packet[xidAt:])) == -2 {
				return true
			}
		}
		return false
	})
	if exists, _, err := conn.Exists("/a"); exists || err != nil {
		t.Errorf("after a ping: %v %v", exists, err)
	}
	connected := false
	for _, ev := range told() {
		connected = connected || ev.State == zk.StateHasSession
	}
	if !connected {
		t.Errorf("the callback was told %v", told())
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for range events {
		}
	}()
	conn.Close()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the events' channel stays open")
	}
	if list := s.until("the closing request", func([]sent) bool { return true }); int32(code(list[len(list)-1].packet)) != -11 {
		t.Errorf("the last packet is %x", list[len(list)-1].packet)
	}
}
