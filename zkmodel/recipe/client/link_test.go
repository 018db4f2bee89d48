package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// script is a connection that gives out what a test wrote down, in pieces.
type script struct {
	net.Conn
	in    io.Reader
	piece func() int
	out   bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	return s.in.Read(p[:min(len(p), s.piece())])
}

func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }

func (s *script) Close() error { return nil }

// listener is a tap that notes what it is told.
type listener struct {
	session int64
	timeout time.Duration
	zxids   []int64
	refuse  error
	ended   error
	ends    int
}

func (l *listener) sending([]byte) error { return nil }

func (l *listener) connected(id int64, timeout time.Duration) error {
	l.session, l.timeout = id, timeout
	return l.refuse
}

func (l *listener) answered(_ uint32, zxid int64) { l.zxids = append(l.zxids, zxid) }
func (l *listener) broken(_ string, err error)    { l.ended, l.ends = err, l.ends+1 }

// frame puts the length before a packet.
func frame(packet []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)
}

// answer is a packet with xid and zxid.
func answer(xid int32, zxid int64, body []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(xid))
	p = binary.BigEndian.AppendUint64(p, uint64(zxid))
	return append(append(p, 0, 0, 0, 0), body...)
}

// TestLinkReads: however the stream is cut into pieces, packets come through
// whole, all but the transaction in an answer, which goes to the tap.
func TestLinkReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hello := binary.BigEndian.AppendUint32(nil, 0)
		hello = binary.BigEndian.AppendUint32(hello, 4000)
		hello = append(binary.BigEndian.AppendUint64(hello, 77), make([]byte, 20)...)
		stream, want, zxids := frame(hello), frame(hello), []int64(nil)
		for range rapid.IntRange(0, 20).Draw(t, "packets") {
			body := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "body")
			xid, zxid := rapid.Int32().Draw(t, "xid"), rapid.Int64().Draw(t, "zxid")
			stream = append(stream, frame(answer(xid, zxid, body))...)
			if xid != eventXid {
				zxids = append(zxids, zxid)
				zxid = 0
			}
			want = append(want, frame(answer(xid, zxid, body))...)
		}
		conn := &script{in: bytes.NewReader(stream), piece: func() int { return rapid.IntRange(1, 60).Draw(t, "piece") }}
		told := &listener{}
		got, err := io.ReadAll(newLink(conn, conn, "host", time.Second, 0, 0, told))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %x, %v, want %x", got, err, want)
		}
		if told.ends != 1 || !errors.Is(told.ended, io.EOF) {
			t.Fatalf("told %d times that it has ended: %v", told.ends, told.ended)
		}
		if told.session != 77 || told.timeout != 4*time.Second || !slices.Equal(told.zxids, zxids) {
			t.Fatalf("told %+v, want %v", told, zxids)
		}
	})
}

// TestLinkWrites: the requests that name a transaction bear those that the
// session has seen, and the library's buffer stays as it is.
func TestLinkWrites(t *testing.T) {
	t.Parallel()
	const latest, since = 0x1122334455667788, 0x1122334455660000
	dated := func(at int, zxid uint64, packet []byte) []byte {
		packet = slices.Clone(packet)
		binary.BigEndian.PutUint64(packet[at:], zxid)
		return packet
	}
	request := func(code uint32) []byte {
		p := binary.BigEndian.AppendUint32(nil, 9) // xid
		return frame(append(binary.BigEndian.AppendUint32(p, code), make([]byte, 24)...))
	}
	connect := frame(make([]byte, 44))
	conn := &script{}
	l := newLink(conn, conn, "host", time.Second, latest, since, &listener{})
	for _, step := range []struct{ packet, sent []byte }{
		{connect, dated(seenInConnect, latest, connect)},
		{request(4), request(4)},
		{request(opSetWatches), dated(seenInSetWatches, since, request(opSetWatches))},
		{request(opSetWatches)[:20], dated(seenInSetWatches, since, request(opSetWatches)[:20])},
		{request(opSetWatches)[:19], request(opSetWatches)[:19]},
		{request(11)[:12], request(11)[:12]},
		{request(11)[:6], request(11)[:6]},
	} {
		before := slices.Clone(step.packet)
		conn.out.Reset()
		if n, err := l.Write(step.packet); n != len(step.packet) || err != nil {
			t.Fatalf("wrote %d: %v", n, err)
		}
		if !bytes.Equal(conn.out.Bytes(), step.sent) || !bytes.Equal(step.packet, before) {
			t.Errorf("%x was sent as %x, want %x", before, conn.out.Bytes(), step.sent)
		}
	}
}

// TestLinkRefuses: a session that the tap does not want never reaches the library.
func TestLinkRefuses(t *testing.T) {
	t.Parallel()
	hello := frame(append(make([]byte, 8), answer(0, 5, nil)...))
	conn := &script{in: bytes.NewReader(hello), piece: func() int { return 100 }}
	told := &listener{refuse: io.ErrUnexpectedEOF}
	n, err := newLink(conn, conn, "host", time.Second, 0, 0, told).Read(make([]byte, 4))
	if n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %d bytes of a refused session: %v", n, err)
	}
}

func FuzzLinkRead(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 5}, 2)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}, 1)
	f.Add(frame(answer(1, 2, []byte("data"))), 3)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		conn := &script{in: bytes.NewReader(stream), piece: func() int { return max(piece, 1) }}
		got, err := io.ReadAll(newLink(conn, conn, "host", time.Second, 0, 0, &listener{}))
		if len(got) > len(stream) || err == nil && len(got) < len(stream)-headSize {
			t.Errorf("%d bytes of %d: %v", len(got), len(stream), err)
		}
	})
}
