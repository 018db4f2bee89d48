package recipe_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// fakeServer speaks as much of ZooKeeper's protocol as a session needs to begin,
// and gives out whatever session ids a test wants: real servers always behave.
type fakeServer struct {
	addr  string
	next  atomic.Int64  // id for the next connection
	zxid  atomic.Int64  // in every answer
	told  chan int64    // the last transactions that clients say they have seen
	lost  atomic.Bool   // answers that the session expired
	mute  atomic.Bool   // answers no restoring of watches
	syncs time.Duration // how long a sync takes
	seen  chan fakeCall // requests other than those that each session makes
}

// fakeCall is a request that came in a session.
type fakeCall struct {
	session int64
	opcode  int32
}

const (
	opExists      = 3
	opGetData     = 4
	opSync        = 9
	opPing        = 11
	opGetChildren = 12
	opMultiRead   = 22
	opSetWatches  = 101
	opClose       = -11
)

func startFake(t *testing.T) (*fakeServer, func()) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	f := &fakeServer{addr: l.Addr().String(), seen: make(chan fakeCall, 100), told: make(chan int64, 100)}
	var (
		work  sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	drop := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			work.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		drop()
		work.Wait()
	})
	return f, drop
}

// serve answers the requests of one connection.
func (f *fakeServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in, id := bufio.NewReader(conn), f.next.Load()
	greeting, err := readPacket(in)
	if err != nil {
		return
	}
	f.told <- int64(binary.BigEndian.Uint64(greeting[4:]))
	hello := binary.BigEndian.AppendUint32(nil, 0)                                // protocol version
	hello = binary.BigEndian.AppendUint32(hello, 10_000)                          // time-out
	hello = binary.BigEndian.AppendUint64(hello, uint64(id))                      // session
	hello = append(binary.BigEndian.AppendUint32(hello, 16), make([]byte, 16)...) // password
	writePacket(conn, hello)
	for {
		p, err := readPacket(in)
		if err != nil {
			return
		}
		xid, opcode := p[:4], int32(binary.BigEndian.Uint32(p[4:]))
		answer := append([]byte(nil), xid...)
		answer = binary.BigEndian.AppendUint64(answer, uint64(f.zxid.Add(1)))
		answer = append(answer, 0, 0, 0, 0) // no error
		if f.lost.Load() && opcode != opPing {
			binary.BigEndian.PutUint32(answer[12:], 1<<32-112)
			writePacket(conn, answer)
			continue
		}
		switch opcode {
		case opPing:
		case opSetWatches:
			f.told <- int64(binary.BigEndian.Uint64(p[8:]))
			if f.mute.Load() {
				continue
			}
		case opSync:
			<-time.After(f.syncs)
			answer = append(answer, p[8:]...) // the path
		case opExists, opGetData, opGetChildren:
			binary.BigEndian.PutUint32(answer[12:], 1<<32-101) // no such node
		case opMultiRead:
			f.seen <- fakeCall{id, opcode}
			binary.BigEndian.PutUint32(answer[12:], 1<<32-6) // ZooKeeper's UNIMPLEMENTED: it does not know the request
		default:
			f.seen <- fakeCall{id, opcode}
			if opcode != opClose {
				continue // never answered
			}
		}
		writePacket(conn, answer)
	}
}

func readPacket(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, p)
	return p, err
}

func writePacket(w io.Writer, p []byte) {
	_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)) // the reader notices
}

// TestChangedSessionID has a server hand out a new session after a reconnect
// without saying that the old one expired. That must end the old one, and
// nothing that was asked for in it may reach the server in the new one.
func TestChangedSessionID(t *testing.T) {
	t.Parallel()
	f, drop := startFake(t)
	f.next.Store(1)
	c := dial(t, "", through(f.addr))
	s := session(t, c)
	pending := make(chan error, 1)
	go func() {
		_, err := s.Create(t.Context(), "/x", nil, recipe.Ephemeral)
		pending <- err
	}()
	if call := <-f.seen; call.session != 1 {
		t.Fatalf("request in session %d", call.session)
	}
	f.next.Store(2)
	drop()
	lost(t, s.Context(), recipe.ErrSessionLost)
	if err := <-pending; err == nil {
		t.Fatal("a request without an answer succeeded")
	}
	_, err := s.Create(t.Context(), "/x", nil, recipe.Ephemeral)
	want(t, err, recipe.ErrSessionLost)
	if next := session(t, c); next.ID() != 2 {
		t.Fatalf("next session is %d", next.ID())
	}
	c.Close()
	for len(f.seen) > 0 {
		if call := <-f.seen; call.session == 2 && call.opcode != opClose {
			t.Fatalf("request %d of the old session reached the new one", call.opcode)
		}
	}
}

// TestRefusedSession has a server say that the session is unknown.
func TestRefusedSession(t *testing.T) {
	t.Parallel()
	f, drop := startFake(t)
	f.next.Store(7)
	c := dial(t, "", through(f.addr))
	s := session(t, c)
	f.next.Store(0)
	drop()
	lost(t, s.Context(), recipe.ErrSessionLost)
	if cause := contextCause(s.Context()); !strings.Contains(cause, "0x7") {
		t.Errorf("%q does not name the session", cause)
	}
	f.next.Store(8)
	if next := session(t, c); next.ID() != 8 {
		t.Fatalf("next session is %d", next.ID())
	}
}

// TestExpiredAnswer has a server answer a request with the end of the session,
// without closing the connection. Serve must go on with the next one.
func TestExpiredAnswer(t *testing.T) {
	t.Parallel()
	f, _ := startFake(t)
	f.next.Store(1)
	c, ctx := dial(t, "", through(f.addr)), patiently(t)
	var served []*recipe.Session
	must(t, c.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		if served = append(served, s); len(served) == 2 {
			return nil
		}
		f.next.Store(2)
		f.lost.Store(true)
		err := s.Sync(ctx)
		want(t, err, recipe.ErrSessionLost)
		f.lost.Store(false)
		return err
	}))
	lost(t, served[0].Context(), recipe.ErrSessionLost)
	if served[0].ID() != 1 || served[1].ID() != 2 {
		t.Errorf("served in sessions %d and %d", served[0].ID(), served[1].ID())
	}
}

// TestSilentServer has a server that stops to answer: the session ends when its
// time-out has passed, neither much earlier nor later.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	root := "/silent"
	c, p := proxied(t, root)
	s := session(t, c)
	_, err := s.Children(t.Context(), "/")
	must(t, err)
	p.Cut()
	start := time.Now()
	lost(t, s.Context(), recipe.ErrSessionLost)
	if took := time.Since(start); took > short+200*time.Millisecond || took < short/2 {
		t.Errorf("the session ended after %s of silence, its time-out is %s", took, s.Timeout())
	}
	_, err = s.Children(t.Context(), "/")
	want(t, err, recipe.ErrSessionLost)
}

// TestMissedChangesAreAskedFor breaks the connection of a client that has a watch
// and keeps asking. On the new connection it must ask for what happened since
// its last answer on the old one, whatever answers have come since.
func TestMissedChangesAreAskedFor(t *testing.T) {
	t.Parallel()
	f, drop := startFake(t)
	f.next.Store(1)
	c := dial(t, "", through(f.addr))
	tree := follow(t, c, "/none", recipe.TreeOptions{}) // watches for the root to appear
	barrier(t, tree)
	s, ctx := session(t, c), patiently(t)
	if first := <-f.told; first != 0 {
		t.Fatalf("a new session has seen transaction %d", first)
	}
	for range 20 {
		must(t, s.Sync(ctx))
		before := f.zxid.Load()
		f.zxid.Add(1000) // the changes that are missed
		drop()
		barrier(t, tree) // answers on the new connection, soon and late
		for _, packet := range []string{"connect request", "restoring of watches"} {
			if told := <-f.told; told < before || told > before+1 { // a ping may have come in between
				t.Fatalf("%s names %d, the last answer was %d", packet, told, before)
			}
		}
	}
}

// TestMissedChangesAreAskedForAgain breaks a connection before its watches are
// restored, but after other answers. The next one must ask from where the first
// one ended, and a barrier must wait for it.
func TestMissedChangesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	f, drop := startFake(t)
	f.next.Store(1)
	c := dial(t, "", through(f.addr))
	tree := follow(t, c, "/none", recipe.TreeOptions{})
	barrier(t, tree)
	s, ctx := session(t, c), patiently(t)
	<-f.told
	before := f.zxid.Load()
	for i := range int64(5) {
		f.zxid.Add(1000)
		f.mute.Store(true)
		drop()
		must(t, s.Sync(ctx))
		if told := <-f.told; told < before+i*1000 {
			t.Fatalf("connect request %d names %d: an older server would take it", i, told)
		}
		if told := <-f.told; told < before || told > before+1 { // a ping may have come in between
			t.Fatalf("restoring %d of watches names %d, they stood last at %d", i, told, before)
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		want(t, tree.Barrier(short), context.DeadlineExceeded)
		want(t, tree.WaitFor(short, before), context.DeadlineExceeded)
		cancel()
	}
	f.mute.Store(false)
	drop()
	barrier(t, tree)
	must(t, tree.WaitFor(ctx, before))
}
