package zuul

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// seen is the last transaction that a server has told us of. We count it in the
// library's stead, which uses its own number when it restores watches while
// answers come in that change it: a data race, and watches that are lost.
// Restored from 0 on, they tell of all that they may have missed.
type seen struct {
	zxid atomic.Int64
	open func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Where the parts of a packet are, behind the four bytes of its length.
const (
	lengthSize = 4
	zxidAt     = lengthSize + 4 // behind the number of a request, or a version
	zxidEnd    = zxidAt + 8
)

// dial connects the library to a server.
func (s *seen) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := s.open(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &link{Conn: conn, seen: s}, nil
}

// link is one connection.
type link struct {
	net.Conn
	seen    *seen
	begin   sync.Once
	greeted bool   // the server has answered to the greeting, which has no header
	packet  []byte // what is left of the last one
}

// Write sends on what the library has written, and adds to its greeting what we
// have seen: no server shows us less.
func (l *link) Write(p []byte) (int, error) {
	l.begin.Do(func() {
		if len(p) >= zxidEnd {
			binary.BigEndian.PutUint64(p[zxidAt:], uint64(l.seen.zxid.Load()))
		}
	})
	return l.Conn.Write(p)
}

// Read hands packets on without their transaction's number.
func (l *link) Read(p []byte) (int, error) {
	if len(l.packet) == 0 {
		head := make([]byte, lengthSize)
		if _, err := io.ReadFull(l.Conn, head); err != nil {
			return 0, err
		}
		l.packet = append(head, make([]byte, binary.BigEndian.Uint32(head))...)
		if _, err := io.ReadFull(l.Conn, l.packet[lengthSize:]); err != nil {
			return 0, err
		}
		if l.greeted && len(l.packet) >= zxidEnd {
			if zxid := int64(binary.BigEndian.Uint64(l.packet[zxidAt:])); zxid > 0 {
				l.seen.zxid.Store(zxid)
			}
			binary.BigEndian.PutUint64(l.packet[zxidAt:], 0)
		}
		l.greeted = true
	}
	n := copy(p, l.packet)
	l.packet = l.packet[n:]
	return n, nil
}
