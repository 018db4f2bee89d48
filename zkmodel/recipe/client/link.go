package client

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
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

// Where a packet to a server names the last transaction that the client has
// seen: behind the version in the connect request, and behind xid and code in the
// request that restores watches.
const (
	seenInConnect    = lengthSize + 4
	seenInSetWatches = lengthSize + 8
)

// Link is one connection to one server. It sees every packet pass and tells
// what the client library does not: when a server last spoke, the last
// transaction it has seen, and which session it really gave us.
//
// It also keeps the last transaction in the library's place. The library takes
// answers to other requests while it prepares to restore its watches after a
// reconnect; one that came early would move its number past changes that were
// missed, and the server would never report them. So answers reach the library
// without a transaction, and what it sends bears that of the connections before: the
// connect request the last one, so that no older server takes us, and the
// restoring of watches the one up to which no event is missing; see rewatch.
type Link struct {
	net.Conn // what the bytes go through, TLS or not
	raw      net.Conn
	addr     string
	in       *bufio.Reader
	left     int         // bytes of the packet at hand that have not been read
	opened   atomic.Bool // the answer to the connect request has come
	greeted  bool        // the connect request was sent
	latest   int64       // the last transaction seen before this connection
	since    int64       // the last one up to which all watch events have come
	maxWait  time.Duration
	readBy   time.Time
	tap      tap
	asked    asked

	writing sync.Mutex // the library writes, and so does Ask
	writeBy time.Time
}

// tap is told what passes over a link.
type tap interface {
	// sending is called before packet goes out; an error stops it.
	sending(packet []byte) error
	// connected is called with the session that a server grants; an error refuses it.
	connected(id int64, timeout time.Duration) error
	// answered is called for every answer, with the number of the request and the
	// server's last transaction.
	answered(xid uint32, zxid int64)
	// broken is called with the error that ended the link.
	broken(addr string, err error)
}

// Server is the "host:port" that the Link leads to.
func (l *Link) Server() string { return l.addr }

func newLink(conn, raw net.Conn, addr string, maxWait time.Duration, latest, since int64, t tap) *Link {
	return &Link{
		Conn: conn, raw: raw, addr: addr, in: bufio.NewReaderSize(conn, 64<<10),
		latest: latest, since: since, maxWait: maxWait, tap: t,
	}
}

// Read hands on what the server sent, one packet after the other, but for the answers to Ask.
func (l *Link) Read(p []byte) (int, error) {
	n, err := l.read(p)
	if err != nil {
		l.asked.end()
	}
	return n, err
}

func (l *Link) read(p []byte) (int, error) {
	for l.left == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	if err != nil {
		l.tap.broken(l.addr, err)
	}
	return n, err
}

// next waits for a packet and looks at its head.
func (l *Link) next() error {
	head, err := l.in.Peek(lengthSize)
	if err != nil {
		l.tap.broken(l.addr, err)
		return err
	}
	size := int(binary.BigEndian.Uint32(head))
	switch l.left = lengthSize + size; {
	case size > maxPacket:
		return fmt.Errorf("read packet of %d bytes: %w", size, ErrPacket)
	case l.left < headSize:
		return nil
	}
	if head, err = l.in.Peek(headSize); err != nil {
		l.tap.broken(l.addr, err)
		return err
	}
	return l.seen(head[lengthSize:])
}

// seen takes the head of one packet, which is in the buffer still, and the whole of an answer to Ask.
func (l *Link) seen(head []byte) error {
	if l.opened.CompareAndSwap(false, true) {
		timeout := time.Duration(binary.BigEndian.Uint32(head[4:])) * time.Millisecond
		return l.tap.connected(int64(binary.BigEndian.Uint64(head[8:])), timeout)
	}
	xid := binary.BigEndian.Uint32(head)
	if int32(xid) == eventXid {
		return nil
	}
	l.tap.answered(xid, int64(binary.BigEndian.Uint64(head[4:])))
	if answer, ours := l.asked.answered(xid); ours {
		return l.take(answer)
	}
	clear(head[4:12])
	return nil
}

// dated returns packet with the transaction that was seen, if it names one.
func (l *Link) dated(packet []byte) []byte {
	at, zxid := seenInSetWatches, l.since
	switch {
	case !l.greeted:
		l.greeted, at, zxid = true, seenInConnect, l.latest
	case codeOf(packet) != opSetWatches:
		return packet
	}
	if len(packet) < at+8 {
		return packet
	}
	packet = slices.Clone(packet)
	binary.BigEndian.PutUint64(packet[at:], uint64(zxid))
	return packet
}

// Write sends one packet; the client library writes each with one call.
//
// It never fails, but drops the connection, so that the library learns of it by
// reading. After an error the library would answer the request once for the
// error and once for the connection, a third time perhaps because it is closed;
// it has room for two answers, and then never ends.
func (l *Link) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.tap.sending(p)
	if err == nil {
		_, err = l.Conn.Write(l.dated(p))
	}
	if err != nil {
		_ = l.Close() // it may be closed already
	}
	return len(p), nil
}

// Close drops the connection at once, without TLS's closing alert, which could block.
func (l *Link) Close() error {
	l.asked.end()
	return l.raw.Close()
}

// SetReadDeadline bounds the wait for a packet. The library sets and clears it
// around every packet; clearing is ignored and small steps are saved up, and the
// answer to the connect request is not awaited ten times as long as a session lives.
func (l *Link) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	limit := time.Now().Add(l.maxWait) //nolint:forbidigo // the deadlines of a connection are the library's, and the host's
	if !l.opened.Load() && t.After(limit) {
		t = limit
	}
	if step := t.Sub(l.readBy); step >= 0 && step < l.maxWait/16 {
		return nil
	}
	l.readBy = t
	return l.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds the sending of a packet, as SetReadDeadline does.
func (l *Link) SetWriteDeadline(t time.Time) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if step := t.Sub(l.writeBy); t.IsZero() || (step >= 0 && step < l.maxWait/16) {
		return nil
	}
	l.writeBy = t
	return l.Conn.SetWriteDeadline(t)
}
