package recipe

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// The first bytes of a packet from a server: its length, and then either
// xid, zxid, error of an answer, or version, time-out, session id of the answer
// to the connect request that opens each connection.
const (
	maxPacket  = 64 << 20 // a longer one is garbage; the library would make room for it
	lengthSize = 4
	headSize   = lengthSize + 16
	eventXid   = -1
)

// link is one connection to one server. It sees every packet pass and tells
// what the client library does not: when a server last spoke, the last
// transaction it has seen, and which session it really gave us.
type link struct {
	net.Conn // what the bytes go through, TLS or not
	raw      net.Conn
	addr     string
	in       *bufio.Reader
	packets  packetHeads
	opened   atomic.Bool // the answer to the connect request has come
	gate     *gate       // nil lets all pass
	maxWait  time.Duration
	readBy   time.Time
	writeBy  time.Time
	tap      tap
}

// tap is told what passes over a link.
type tap interface {
	// sending is called before a packet goes out; an error stops it.
	sending() error
	// connected is called with the session that a server grants; an error refuses it.
	connected(id int64, timeout time.Duration) error
	// answered is called for every answer, with the server's last transaction.
	answered(zxid int64)
	// broken is called with the error that ended the link.
	broken(addr string, err error)
}

func newLink(conn, raw net.Conn, addr string, maxWait time.Duration, t tap) *link {
	return &link{Conn: conn, raw: raw, addr: addr, in: bufio.NewReaderSize(conn, 64<<10), maxWait: maxWait, tap: t}
}

// Read hands on what the server sent, and looks at the head of every packet.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if err != nil {
		l.tap.broken(l.addr, err)
		return n, err
	}
	if err := l.packets.feed(p[:n], l.seen); err != nil {
		return 0, err
	}
	return n, nil
}

// seen takes the head of one packet.
func (l *link) seen(head []byte) error {
	if len(head) < headSize-lengthSize {
		return nil
	}
	if l.opened.CompareAndSwap(false, true) {
		timeout := time.Duration(binary.BigEndian.Uint32(head[4:])) * time.Millisecond
		return l.tap.connected(int64(binary.BigEndian.Uint64(head[8:])), timeout)
	}
	if l.gate != nil {
		if err := l.gate.pass(l.maxWait); err != nil {
			return err
		}
	}
	if xid := int32(binary.BigEndian.Uint32(head)); xid != eventXid {
		l.tap.answered(int64(binary.BigEndian.Uint64(head[4:])))
	}
	return nil
}

// Write sends one packet; the client library writes each with one call.
//
// It never fails, but drops the connection, so that the library learns of it by
// reading. After an error the library would answer the request once for the
// error and once for the connection, a third time perhaps because it is closed;
// it has room for two answers, and then never ends.
func (l *link) Write(p []byte) (int, error) {
	err := l.tap.sending()
	if err == nil {
		_, err = l.Conn.Write(p)
	}
	if l.gate != nil {
		l.gate.sent(p)
	}
	if err != nil {
		_ = l.Close() // it may be closed already
	}
	return len(p), nil
}

// Close drops the connection at once, without TLS's farewell, which could block.
func (l *link) Close() error {
	if l.gate != nil {
		l.gate.open() // whoever waits finds the connection closed
	}
	return l.raw.Close()
}

// SetReadDeadline bounds the wait for a packet. The library sets and clears it
// around every packet; clearing is ignored and small steps are saved up, and the
// answer to the connect request is not awaited ten times as long as a session lives.
func (l *link) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if limit := time.Now().Add(l.maxWait); !l.opened.Load() && t.After(limit) {
		t = limit
	}
	if step := t.Sub(l.readBy); step >= 0 && step < l.maxWait/16 {
		return nil
	}
	l.readBy = t
	return l.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds the sending of a packet, as SetReadDeadline does.
func (l *link) SetWriteDeadline(t time.Time) error {
	if step := t.Sub(l.writeBy); t.IsZero() || (step >= 0 && step < l.maxWait/16) {
		return nil
	}
	l.writeBy = t
	return l.Conn.SetWriteDeadline(t)
}

// packetHeads finds the heads of packets in a stream that comes in any pieces.
type packetHeads struct {
	head [headSize]byte
	have int // bytes of head that are there
	size int // of the packet, once its length is there
	skip int // bytes of the packet behind its head
}

// feed passes the head of every packet in p, without its length, to seen.
func (h *packetHeads) feed(p []byte, seen func(head []byte) error) error {
	for len(p) > 0 {
		if h.skip > 0 {
			n := min(h.skip, len(p))
			h.skip, p = h.skip-n, p[n:]
			continue
		}
		want := lengthSize
		if h.have >= lengthSize {
			want += min(h.size, headSize-lengthSize)
		}
		n := copy(h.head[h.have:want], p)
		h.have, p = h.have+n, p[n:]
		if h.have == lengthSize {
			h.size = int(binary.BigEndian.Uint32(h.head[:]))
			if h.size > maxPacket {
				return fmt.Errorf("read packet of %d bytes: %w", h.size, ErrServer)
			}
		}
		if h.have < lengthSize || h.have < lengthSize+min(h.size, headSize-lengthSize) {
			continue
		}
		body := h.have - lengthSize
		h.skip, h.have = h.size-body, 0
		if err := seen(h.head[lengthSize : lengthSize+body]); err != nil {
			return err
		}
	}
	return nil
}
