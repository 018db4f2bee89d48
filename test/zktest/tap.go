package zktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Tap is a way to a server that knows where a client's requests begin and end. It can
// count those that name a path, and end for good after some, as a client that is killed
// there.
type Tap struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	left   int // requests that are passed on yet; negative is all
	frames []string
	conns  []net.Conn
	ended  bool
}

// StartTap returns a Tap to target that passes on so many requests, the first of which
// opens the session, and then no more; a negative number is all. It ends with the test.
func StartTap(tb testing.TB, target string, requests int) *Tap {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start tap: %v", err)
	}
	t := &Tap{target: target, listener: l, left: requests}
	t.work.Go(t.accept)
	tb.Cleanup(func() { t.end(); t.work.Wait() })
	return t
}

// Addr returns the "host:port" to connect to.
func (t *Tap) Addr() string { return t.listener.Addr().String() }

// Naming counts the requests so far that name a path, or one below it.
func (t *Tap) Naming(path string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, frame := range t.frames {
		if strings.Contains(frame, path) {
			n++
		}
	}
	return n
}

// Ended reports whether the Tap has passed on all that it was to.
func (t *Tap) Ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// end closes everything.
func (t *Tap) end() {
	_ = t.listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, c := range t.conns {
		_ = c.Close()
	}
}

func (t *Tap) accept() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", t.target)
		if err != nil || !t.track(client, server) {
			_ = client.Close()
			return
		}
		t.work.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		t.work.Go(func() { t.pass(client, server); _ = server.Close() })
	}
}

// track notes open connections, unless the Tap has ended.
func (t *Tap) track(conns ...net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = append(t.conns, conns...)
	return !t.ended
}

// pass passes requests on, one after the other.
func (t *Tap) pass(client io.Reader, server io.Writer) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(client, frame); err != nil {
			return
		}
		if !t.note(string(frame)) {
			t.end()
			return
		}
		if _, err := server.Write(bytes.Join([][]byte{head[:], frame}, nil)); err != nil {
			return
		}
	}
}

// note counts a request, and reports whether it may pass.
func (t *Tap) note(frame string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return false
	}
	t.left--
	t.frames = append(t.frames, frame)
	return true
}
