package disk

import "sync/atomic"

// block is a stretch of a file that several hashes read.
type block struct {
	data  []byte
	users atomic.Int32
}

// done gives the buffer back when the last hash has read it.
func (b *block) done(free chan<- []byte) {
	if b.users.Add(-1) == 0 {
		free <- b.data[:cap(b.data)]
	}
}
