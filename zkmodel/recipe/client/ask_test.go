package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// echo is a server that gives each request back; one whose body begins with "no" is refused, one
// with "end" ends the connection.
func echo(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if _, err := readFrame(conn); err != nil {
		return
	}
	hello := binary.BigEndian.AppendUint32(nil, 0)
	hello = binary.BigEndian.AppendUint32(hello, 6000)
	hello = append(binary.BigEndian.AppendUint64(hello, 7), make([]byte, 20)...)
	_, _ = conn.Write(frame(hello))
	for {
		p, err := readFrame(conn)
		if err != nil || bytes.HasPrefix(p[8:], []byte("end")) {
			return
		}
		reply := answer(int32(binary.BigEndian.Uint32(p)), 5, p[4:])
		if bytes.HasPrefix(p[8:], []byte("no")) {
			reply[15] = 6
		}
		_, _ = conn.Write(frame(reply))
	}
}

// request is one of the library's.
func request(xid, opcode uint32) []byte {
	return frame(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, xid), opcode))
}

// Mistakes: the library sees an answer to a request that it never made, or waits for one that was
// taken away; an answer goes to another; a request that is never answered is waited for.
func TestAskGoesBetweenTheRequestsOfTheLibrary(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	var work sync.WaitGroup
	work.Go(func() { echo(theirs) })
	defer work.Wait()
	l := newLink(ours, ours, "host", 10*time.Second, 0, 0, &listener{})
	if _, err := l.Ask(22, nil); !errors.Is(err, ErrUnanswered) {
		t.Errorf("asked before the connection is open: %v", err)
	}
	work.Go(func() { _, _ = l.Write(frame(make([]byte, 44))) })
	if _, err := readFrame(l); err != nil {
		t.Fatal(err)
	}
	const count = 50
	var library []uint32
	done := make(chan struct{})
	work.Go(func() { // as the library reads
		defer close(done)
		for {
			p, err := readFrame(l)
			if err != nil {
				return
			}
			library = append(library, binary.BigEndian.Uint32(p))
		}
	})
	var asking sync.WaitGroup
	for n := range uint32(count) {
		asking.Go(func() {
			body := bytes.Repeat([]byte{byte(n)}, int(n)*3000) // longer than the Link's buffer, too
			got, err := l.Ask(int32(n), body)
			if want := append([]byte{0, 0, 0, byte(n)}, body...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("asked %d: %d bytes, %v", n, len(got), err)
			}
		})
	}
	for n := range uint32(count) {
		_, _ = l.Write(request(n+1, 3))
	}
	asking.Wait()
	if _, err := l.Ask(1, []byte("no")); !errors.Is(err, ErrRefused) {
		t.Errorf("what the server refuses: %v", err)
	}
	if _, err := l.Ask(1, []byte("end")); !errors.Is(err, ErrUnanswered) {
		t.Errorf("a connection that breaks before the answer: %v", err)
	}
	if _, err := l.Ask(1, nil); !errors.Is(err, ErrUnanswered) {
		t.Errorf("a connection that is broken: %v", err)
	}
	<-done
	if len(library) != count {
		t.Fatalf("the library got %d answers to %d requests", len(library), count)
	}
	for i, xid := range library {
		if xid != uint32(i)+1 {
			t.Errorf("the answer to %#x in the place of %d", xid, i+1)
		}
	}
	_ = l.Close()
}
