package zookeeper

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

// The requests that clients send, and two of the servers' own.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opCreateContainer = 19
	opCreateTTL       = 21
	opMultiRead       = 22
	opAuth            = 100
	opSetWatches      = 101
	opError           = -1
	opBegin           = -10 // a session, by the first packet of a connection
	opClose           = -11
	opResume          = -12 // a session on another connection; takes no transaction
)

// What a server answers instead of a result.
const (
	errInconsistency  = -2
	errMarshalling    = -5
	errUnimplemented  = -6
	errBadArguments   = -8
	errNoNode         = -101
	errNoAuth         = -102
	errBadVersion     = -103
	errEphemeral      = -108
	errNodeExists     = -110
	errNotEmpty       = -111
	errExpired        = -112
	errInvalidACL     = -114
	errAuthFailed     = -115
	errMoved          = -118
	errReconfigLocked = -123
)

// The numbers of answers that belong to no request.
const (
	xidEvent = -1
	xidPing  = -2
)

// maxPacket is the largest packet that a server takes (jute.maxbuffer).
const maxPacket = 0xfffff

// reader takes jute's types from a packet. After the first that is not there it is bad,
// and gives zeros.
type reader struct {
	p   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.p) {
		r.bad, r.p = true, nil
		return make([]byte, 8)
	}
	p := r.p[:n]
	r.p = r.p[n:]
	return p
}

func (r *reader) int32() int32   { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *reader) int64() int64   { return int64(binary.BigEndian.Uint64(r.take(8))) }
func (r *reader) bool() bool     { return r.take(1)[0] != 0 }
func (r *reader) string() string { return string(r.buffer()) }

// buffer is a copy of a byte array; one of length -1 is nil.
func (r *reader) buffer() []byte {
	n := int(r.int32())
	if n == -1 || r.bad {
		return nil
	}
	p := append([]byte{}, r.take(n)...)
	if r.bad {
		return nil
	}
	return p
}

// each reads a list.
func (r *reader) each(item func()) {
	for n := r.int32(); n > 0 && !r.bad; n-- {
		item()
	}
}

func (r *reader) strings() (list []string) {
	r.each(func() { list = append(list, r.string()) })
	return list
}

func (r *reader) acl() (list []zk.ACL) {
	r.each(func() { list = append(list, zk.ACL{Perms: r.int32(), Scheme: r.string(), ID: r.string()}) })
	return list
}

// writer collects jute's types.
type writer []byte

func (w *writer) int32(n int32) { *w = binary.BigEndian.AppendUint32(*w, uint32(n)) }
func (w *writer) int64(n int64) { *w = binary.BigEndian.AppendUint64(*w, uint64(n)) }

func (w *writer) bool(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}

func (w *writer) buffer(p []byte) {
	if p == nil {
		w.int32(-1)
		return
	}
	w.int32(int32(len(p)))
	*w = append(*w, p...)
}

func (w *writer) string(s string) {
	w.int32(int32(len(s)))
	*w = append(*w, s...)
}

func (w *writer) strings(list []string) {
	w.int32(int32(len(list)))
	for _, s := range list {
		w.string(s)
	}
}

func (w *writer) acl(list []zk.ACL) {
	w.int32(int32(len(list)))
	for _, a := range list {
		w.int32(a.Perms)
		w.string(a.Scheme)
		w.string(a.ID)
	}
}

func (w *writer) stat(s zk.Stat) {
	for _, n := range []int64{s.Czxid, s.Mzxid, s.Ctime, s.Mtime} {
		w.int64(n)
	}
	for _, n := range []int32{s.Version, s.Cversion, s.Aversion} {
		w.int32(n)
	}
	w.int64(s.EphemeralOwner)
	w.int32(s.DataLength)
	w.int32(s.NumChildren)
	w.int64(s.Pzxid)
}

// header begins an answer, behind four bytes for its length.
func header(xid int32, zxid int64, code int32) *writer {
	w := &writer{0, 0, 0, 0}
	w.int32(xid)
	w.int64(zxid)
	w.int32(code)
	return w
}

// packet writes the length in front.
func (w *writer) packet() []byte {
	binary.BigEndian.PutUint32(*w, uint32(len(*w)-4))
	return *w
}
