package recipe

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

// The numbers of ZooKeeper's protocol for several reads as one request, which servers take
// since 3.6 (in its sources MultiOperationRecord and MultiResponse).
const (
	wireMultiRead = 22
	wireGetData   = 4
	wireGetNames  = 8
	wireFailed    = -1
	wireNoNode    = -101
)

// encodeReads is the body of a request for all of reads.
func (s *Session) encodeReads(reads []Read) []byte {
	b := make([]byte, 0, 128*len(reads))
	for _, r := range reads {
		op := wireGetData
		if r.children {
			op = wireGetNames
		}
		path := s.abs(r.path)
		b = appendHead(b, op, false)
		b = binary.BigEndian.AppendUint32(b, uint32(len(path)))
		b = append(append(b, path...), 0) // without a watch
	}
	return appendHead(b, -1, true)
}

// appendHead begins a step of several, or says that there is no other.
func appendHead(b []byte, op int, last bool) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	if last {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, 1<<32-1) // no error
}

// decodeReads fills in the results that an answer to encodeReads tells: what was read, and what is
// not there. What else kept a server from a read is not known.
func decodeReads(answer []byte, reads []Read, results []ReadResult) {
	in := &wireReader{rest: answer}
	for i, r := range reads {
		var result ReadResult
		op, last, _ := in.number(), in.take(1), in.number()
		switch {
		case last == nil || last[0] != 0:
			return
		case op == wireGetData && !r.children:
			result.Data = in.text()
			result.Stat, result.known = in.stat()
		case op == wireGetNames && r.children:
			result.Children, result.known = in.names()
		case op == wireFailed:
			if result.known = in.number() == wireNoNode; result.known {
				result.Err = translate(r.verb(), r.path, zk.ErrNoNode)
			}
		default:
			return
		}
		if result.known {
			results[i] = result
		}
	}
}

// wireReader reads an answer from its begin on. Behind its end are zeros and nils, and cut tells so.
type wireReader struct {
	rest []byte
	cut  bool
}

func (r *wireReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.cut = nil, true
		return nil
	}
	head := r.rest[:n:n]
	r.rest = r.rest[n:]
	return head
}

func (r *wireReader) number() int {
	if b := r.take(4); b != nil {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

// text is a length and as many bytes; the length -1 is that of none.
func (r *wireReader) text() []byte {
	n := r.number()
	if n == -1 {
		return nil
	}
	return r.take(n)
}

func (r *wireReader) names() (list []string, ok bool) {
	count := r.number()
	if r.cut || count < 0 || count > len(r.rest) { // each takes more than a byte
		return nil, false
	}
	list = make([]string, 0, count)
	for range count {
		name := r.text()
		if name == nil {
			return nil, false
		}
		list = append(list, string(name))
	}
	return list, true
}

func (r *wireReader) stat() (Stat, bool) {
	b := r.take(68)
	if b == nil {
		return Stat{}, false
	}
	long := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	short := func(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
	return newStat(&zk.Stat{
		Czxid: long(0), Mzxid: long(8), Ctime: long(16), Mtime: long(24),
		Version: short(32), Cversion: short(36), Aversion: short(40),
		EphemeralOwner: long(44), DataLength: short(52), NumChildren: short(56), Pzxid: long(60),
	}), true
}
