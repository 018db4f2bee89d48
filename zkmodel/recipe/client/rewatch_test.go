package client

import (
	"encoding/binary"
	"testing"
)

// wire is a request with a number, a code and a body of size bytes that ends with last.
func wire(xid, code uint32, size int, last byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(8+size))
	p = binary.BigEndian.AppendUint32(p, xid)
	p = binary.BigEndian.AppendUint32(p, code)
	p = append(p, make([]byte, size)...)
	p[len(p)-1] = last
	return p
}

// TestRewatch: watches stand again after the answer to the last request that
// restores them, whichever that is, and what a connection missed that broke
// before is asked for again.
func TestRewatch(t *testing.T) {
	t.Parallel()
	const full, some, path = restoreLimit - 50, 1000, 100
	watching := func(w *rewatch) {
		w.sent(wire(1, opGetData, path, 1))
		w.restart(10)
	}
	ping := wire(1<<32-2, opPing, 1, 0)[:codeAt+4] // it has no body
	for name, step := range map[string]struct {
		do    func(w *rewatch)
		whole bool
	}{
		"nothing watched": {func(w *rewatch) {
			w.sent(wire(1, opGetData, path, 0))
			w.restart(10)
		}, true},
		"nothing restored yet": {watching, false},
		"a first connection":   {func(w *rewatch) { w.sent(wire(1, opGetData, path, 1)) }, true},
		"not answered":         {func(w *rewatch) { watching(w); w.sent(wire(2, opSetWatches, some, 0)) }, false},
		"answered":             {func(w *rewatch) { watching(w); w.sent(wire(2, opSetWatches, some, 0)); w.answered(2) }, true},
		"another answered":     {func(w *rewatch) { watching(w); w.sent(wire(2, opSetWatches, some, 0)); w.answered(3) }, false},
		"one of two": {func(w *rewatch) {
			watching(w)
			w.sent(wire(2, opSetWatches, full, 0))
			w.answered(2)
		}, false},
		"two of two": {func(w *rewatch) {
			watching(w)
			w.sent(wire(2, opSetWatches, full, 0))
			w.answered(2)
			w.sent(wire(3, opSetWatches, some, 0))
			w.answered(3)
		}, true},
		"what an earlier connection left over": {func(w *rewatch) {
			watching(w)
			w.sent(wire(2, opSetWatches, some, 0))
			w.sent(wire(3, opSetWatches, full, 0))
			w.answered(2)
		}, false},
		"full and the last": {func(w *rewatch) {
			watching(w)
			w.sent(wire(2, opSetWatches, full, 0))
			w.sent(ping)
			w.sent(ping)
			w.answered(2)
			w.sent(ping)
			w.sent(ping)
		}, true},
		"one ping": {func(w *rewatch) { watching(w); w.sent(ping) }, false},
	} {
		w := newRewatch()
		step.do(w)
		if whole, _ := w.state(); whole != step.whole {
			t.Errorf("%s: whole %t", name, whole)
		}
		since := int64(10) // as before the connection that did not restore them
		if step.whole {
			since = 20
		}
		if got := w.restart(20); got != since {
			t.Errorf("%s: the next connection asks since %d, want %d", name, got, since)
		}
	}
}
