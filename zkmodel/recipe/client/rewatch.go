package client

import (
	"encoding/binary"
	"sync"
)

// What the client library asks for with the watches that it restores.
const (
	// restoreLimit is at how many bytes the library begins another request.
	restoreLimit = 128 << 10
	// restorePings is after how many pings without a request none is to come any more.
	restorePings = 2
)

// Where a request has its number and its code, and the codes that matter here.
const (
	xidAt  = lengthSize
	codeAt = lengthSize + 4

	opExists       = 3
	opGetData      = 4
	opPing         = 11
	opGetChildren2 = 12
	opSetWatches   = 101
)

// rewatch knows when all watches of a session stand again after a reconnect, and
// since which transaction the server must report what they missed.
//
// The library restores its watches with several requests, one after the answer
// to the other, and mixes them with all else. Until the last is answered there may be
// changes of which no event has come, whatever transaction other answers show;
// and if the connection breaks before, the next must ask from the same
// transaction again. How many requests there will be nobody tells, but one
// that has room for the longest path watched is the last. If that one happens to be full,
// pings tell that none follows.
type rewatch struct {
	mu      sync.Mutex
	since   int64           // all events up to it have come
	whole   bool            // and, on this connection, all later ones do
	longest int             // of the requests that set a watch
	open    map[uint32]bool // requests to restore that are not answered; true for the last
	pings   int             // since the last of those was answered
	changed chan struct{}   // closed when whole becomes true or a connection begins
}

// codeOf is what a request asks for; 0 where it is too short to say.
func codeOf(packet []byte) uint32 {
	if len(packet) < codeAt+4 {
		return 0
	}
	return binary.BigEndian.Uint32(packet[codeAt:])
}

func newRewatch() *rewatch {
	return &rewatch{whole: true, open: map[uint32]bool{}, changed: make(chan struct{})}
}

// restart begins with a new connection and returns the transaction since which
// watches missed something; seen is the last of the connections before.
func (w *rewatch) restart(seen int64) (since int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.whole {
		w.since = seen
	}
	w.whole = w.longest == 0 // nothing to restore
	w.pings = 0
	clear(w.open)
	w.wake()
	return w.since
}

func (w *rewatch) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// sent looks at a packet that goes out.
func (w *rewatch) sent(packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch codeOf(packet) {
	case opExists, opGetData, opGetChildren2:
		if packet[len(packet)-1] != 0 { // with a watch
			w.longest = max(w.longest, len(packet))
		}
	case opSetWatches:
		w.whole = false
		w.open[binary.BigEndian.Uint32(packet[xidAt:])] = len(packet)+w.longest <= restoreLimit
	case opPing:
		if w.pings++; !w.whole && len(w.open) == 0 && w.pings >= restorePings {
			w.whole = true
			w.wake()
		}
	}
}

// answered notes the answer to the request with the number xid.
func (w *rewatch) answered(xid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.open[xid]
	if !ok {
		return
	}
	delete(w.open, xid)
	w.pings = 0
	if last && len(w.open) == 0 {
		w.whole = true
		w.wake()
	}
}

// state reports whether all watches stand, and a channel that is closed when that changes.
func (w *rewatch) state() (whole bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole, w.changed
}
