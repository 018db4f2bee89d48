package client

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"time"
)

// noted is a connection that notes what is set, and fails when it is written to.
type noted struct {
	net.Conn
	read, write []time.Time
	closed      int
	fails       error
}

func (n *noted) SetReadDeadline(t time.Time) error  { n.read = append(n.read, t); return nil }
func (n *noted) SetWriteDeadline(t time.Time) error { n.write = append(n.write, t); return nil }
func (n *noted) Write(p []byte) (int, error)        { return len(p), n.fails }
func (n *noted) Close() error                       { n.closed++; return nil }

// Deadlines that the library sets for each packet reach the connection in steps, never late by more than a step, and clearing one
// never does. Before a server has answered, a silent one is given up sooner than the library would.
func TestDeadlinesInSteps(t *testing.T) {
	t.Parallel()
	const step = time.Second
	at := time.Now().Add(time.Hour)
	times := []time.Time{at, at, at.Add(step - 1), {}, at.Add(step), at.Add(step - 1), at.Add(3 * step)}
	want := []time.Time{at, at.Add(step), at.Add(step - 1), at.Add(3 * step)}
	conn := &noted{}
	l := newLink(conn, conn, "host", 16*step, 0, 0, &listener{})
	l.opened.Store(true)
	for _, at := range times {
		if err := errors.Join(l.SetReadDeadline(at), l.SetWriteDeadline(at)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(conn.read, want) || !slices.Equal(conn.write, want) {
		t.Errorf("reads by %v\nwrites by %v\nwant %v", conn.read, conn.write, want)
	}
	conn = &noted{}
	l = newLink(conn, conn, "host", 16*step, 0, 0, &listener{})
	soon := time.Now().Add(5 * step)
	_ = l.SetReadDeadline(soon)
	_ = l.SetReadDeadline(at)
	if len(conn.read) != 2 || !conn.read[0].Equal(soon) || time.Until(conn.read[1]) > 16*step || time.Until(conn.read[1]) < 10*step {
		t.Errorf("before the first answer: %v", conn.read)
	}
}

// A packet that cannot be sent, or must not be, ends the connection, and is no error of the library's; who asked is told.
func TestWritesThatFail(t *testing.T) {
	t.Parallel()
	conn := &noted{}
	l := newLink(conn, conn, "host", time.Second, 0, 0, &listener{})
	if n, err := l.Write(make([]byte, 44)); n != 44 || err != nil || conn.closed != 0 {
		t.Errorf("%d, %v, closed %d times", n, err, conn.closed)
	}
	_, waits, _ := l.asked.begin()
	conn.fails = errOther
	if n, err := l.Write(make([]byte, 44)); n != 44 || err != nil || conn.closed != 1 {
		t.Errorf("%d, %v, closed %d times", n, err, conn.closed)
	}
	select {
	case <-waits:
	default:
		t.Error("who asked waits for an answer")
	}
	conn = &noted{fails: errOther}
	l = newLink(conn, conn, "host", time.Minute, 0, 0, &listener{})
	l.opened.Store(true)
	if _, err := l.Ask(1, nil); !errors.Is(err, ErrUnanswered) || len(conn.write) != 1 || time.Until(conn.write[0]) > time.Minute {
		t.Errorf("asked: %v, to be written by %v", err, conn.write)
	}
	conn = &noted{}
	l = newLink(conn, conn, "host", time.Second, 0, 0, deaf{})
	if n, err := l.Write(make([]byte, 44)); n != 44 || err != nil || conn.closed != 1 {
		t.Errorf("what must not be sent: %d, %v, closed %d times", n, err, conn.closed)
	}
}

// deaf is a tap that lets nothing be sent.
type deaf struct{ *listener }

func (deaf) sending([]byte) error { return errOther }

// sends is a request with a number, a code, and so many bytes in all, the last of which asks for a watch.
func sends(xid, code uint32, size int) []byte {
	p := make([]byte, size)
	binary.BigEndian.PutUint32(p[xidAt:], xid)
	binary.BigEndian.PutUint32(p[codeAt:], code)
	if size > codeAt+4 {
		p[size-1] = 1
	}
	return p
}

// When all watches stand again: with the answer to the last request that restores them, or, where a full one may be the last, once pings
// follow without another; never while one is open. Who waits is woken.
func TestWatchesStandAgain(t *testing.T) {
	t.Parallel()
	ping := sends(0xfffffffe, opPing, codeAt+4)
	woken := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	w := newRewatch()
	w.sent(make([]byte, codeAt+3)) // no request
	w.sent(sends(1, opGetData, 100))
	_, changed := w.state()
	w.sent(ping)
	if w.sent(ping); woken(changed) {
		t.Error("woken by pings where nothing has changed")
	}
	w.restart(5)
	if whole, _ := w.state(); whole || !woken(changed) {
		t.Errorf("another connection begins; whole: %t", whole)
	}
	expect := func(what string, want bool) {
		t.Helper()
		if whole, _ := w.state(); whole != want {
			t.Errorf("%s: whole is %t", what, whole)
		}
	}
	w.sent(ping)
	w.restart(5)
	w.sent(ping)
	expect("a ping on each of two connections", false)
	w.answered(99)
	_, changed = w.state()
	w.sent(ping)
	if expect("two pings, and an answer to something else", true); !woken(changed) {
		t.Error("who waits is not woken by pings")
	}
	w.sent(sends(2, opSetWatches, restoreLimit-100+1)) // full: another may follow
	expect("a request to restore", false)
	w.sent(ping)
	w.sent(ping)
	expect("pings while it is open", false)
	w.answered(2)
	w.sent(ping)
	expect("one ping after its answer", false)
	w.sent(sends(3, opSetWatches, restoreLimit-100)) // there was room for the longest
	_, changed = w.state()
	if w.answered(3); !woken(changed) {
		t.Error("who waits is not woken by the last answer")
	}
	expect("the answer to the last", true)
}
