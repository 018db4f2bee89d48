package client

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs/clock"
)

// stubborn is an owner that lets nothing be sent.
type stubborn struct{ owner }

func (stubborn) Sending() error { return errOther }

// Requests of a connection that is gone are no word for a session's time: what a server answers to the next connection is not
// counted as an answer to them. What must not be sent is not counted as sent.
func TestLeaseCountsByConnection(t *testing.T) {
	t.Parallel()
	g := NewGuard(&owner{id: 7, connected: func() {}}, clock.Clock{})
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	g.Wrap(ours, ours, "host", time.Second)
	for range 5 {
		if err := g.sending(make([]byte, 40)); err != nil {
			t.Fatal(err)
		}
	}
	g.answered(1, 9)
	g.Wrap(ours, ours, "host", time.Second)
	if g.lease.sent != 0 || g.lease.answered != 0 || len(g.lease.marks) != 0 || g.Seen() != 9 {
		t.Errorf("another connection begins with %d requests and %d answers, seen %d", g.lease.sent, g.lease.answered, g.Seen())
	}
	no := NewGuard(&stubborn{}, clock.Clock{})
	if err := no.sending(make([]byte, 40)); !errors.Is(err, errOther) || no.lease.sent != 0 {
		t.Errorf("%v, %d sent", err, no.lease.sent)
	}
}

// A request of ours that is answered is forgotten; where the link is over none begins, and none is waited for.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	a := &asked{}
	xid, answered, open := a.begin()
	if _, ours := a.answered(xid); !open || !ours {
		t.Errorf("begun: %t, ours: %t", open, ours)
	}
	if _, ours := a.answered(xid); ours {
		t.Error("answered twice")
	}
	_, waits, _ := a.begin()
	a.end()
	if _, more := <-waits; more {
		t.Error("an answer behind the end")
	}
	select {
	case <-answered:
		t.Error("one that was answered is closed")
	default:
	}
	if _, _, open := a.begin(); open {
		t.Error("begun on a link that is over")
	}
}

// An answer that is cut is no answer: who asked is told, and so is who watches the connection.
func TestCutAnswers(t *testing.T) {
	t.Parallel()
	tap := &listener{}
	whole := frame(answer(1, 5, []byte("body")))
	l := newLink(&script{in: strings.NewReader(string(whole[:len(whole)-2])), piece: func() int { return 1 << 10 }}, nil, "host", time.Second, 0, 0, tap)
	l.opened.Store(true)
	l.left = len(whole)
	answered := make(chan []byte, 1)
	if err := l.take(answered); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(tap.ended, io.ErrUnexpectedEOF) {
		t.Errorf("%v; told %v", err, tap.ended)
	}
	if _, more := <-answered; more {
		t.Error("half an answer is handed on")
	}
}

// Each answer counts, whatever transaction it shows: a server that is behind takes nothing back. What is heard is not kept.
func TestAnswersCount(t *testing.T) {
	t.Parallel()
	g := NewGuard(&owner{id: 7, connected: func() {}}, clock.Clock{})
	for n := range 3 {
		if err := g.sending(make([]byte, 40)); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * markEvery)
		g.answered(uint32(n), 9-int64(n))
	}
	if g.Seen() != 9 || g.lease.answered != 3 || len(g.lease.marks) != 0 {
		t.Errorf("seen %d after %d answers; %d requests are remembered", g.Seen(), g.lease.answered, len(g.lease.marks))
	}
}

// Mistake: a read that gives nothing, and no error, where a packet is at hand: the library would take that for the end of it.
func TestReadsGiveSomething(t *testing.T) {
	t.Parallel()
	hello := frame(make([]byte, 40))
	l := newLink(&script{in: strings.NewReader(string(hello)), piece: func() int { return 1 << 10 }}, nil, "host", time.Second, 0, 0, &listener{})
	if n, err := l.Read(make([]byte, 8)); n != 8 || err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
}

// A stream that ends, in a head or in a packet, is told to who watches the connection, and what came whole is handed on.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	hello := frame(make([]byte, 40))
	for cut, want := range map[int]int{0: 0, 2: 0, 10: 0, 30: 30, 44: 44} {
		tap := &listener{}
		l := newLink(&script{in: strings.NewReader(string(hello[:cut])), piece: func() int { return 1 << 10 }}, nil, "host", time.Second, 0, 0, tap)
		got, err := io.ReadAll(l)
		if len(got) != want || tap.ended == nil || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %d bytes, %v, told %v", cut, len(got), err, tap.ended)
		}
	}
}

// Garbage for a length ends the connection before anything is made for it; a packet that is shorter than a head is handed on, and tells nothing.
func TestLengths(t *testing.T) {
	t.Parallel()
	for size, want := range map[uint32]error{maxPacket + 1: ErrPacket, 1<<32 - 1: ErrPacket, maxPacket: nil} {
		head := append(binary.BigEndian.AppendUint32(nil, size), make([]byte, 40)...)
		l := newLink(&script{in: strings.NewReader(string(head)), piece: func() int { return 1 << 10 }}, nil, "host", time.Second, 0, 0, &listener{})
		if _, err := l.Read(make([]byte, 8)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
	tap := &listener{}
	l := newLink(&script{in: strings.NewReader(string(frame(make([]byte, 12)))), piece: func() int { return 1 << 10 }}, nil, "host", time.Second, 0, 0, tap)
	l.opened.Store(true)
	if got, err := io.ReadAll(l); len(got) != 16 || err != nil || len(tap.zxids) != 0 {
		t.Errorf("%d bytes, %v; told of %v", len(got), err, tap.zxids)
	}
}
