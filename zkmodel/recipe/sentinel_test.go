package recipe

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"
)

// packet is a request with a code, as the library writes it.
func packet(code uint32) []byte {
	p := make([]byte, 12)
	binary.BigEndian.PutUint32(p[8:], code)
	return p
}

// passes tells whether an answer passes a gate within a minute.
func passes(g *gate) bool {
	done := make(chan struct{})
	go func() {
		_ = g.pass(time.Hour)
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

func TestGateHoldsAnswersUntilWatchesAreRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.sent(packet(4)) // a read that was queued while there was no connection
		if passes(g) {
			t.Error("its answer overtook the watches")
		}
		g.sent(packet(opAuth))
		if !passes(g) {
			t.Error("the answer to an authentication was held back, which the library awaits first")
		}
		if passes(g) {
			t.Error("an authentication let more than its own answer pass")
		}
		g.sent(packet(opSetWatches))
		if !passes(g) {
			t.Error("answers are held back although the watches are restored")
		}
	})
}

func TestGateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := newGate().pass(time.Second); err == nil {
			t.Error("a connection on which watches are never restored must end")
		}
	})
}
