package client

import (
	"errors"
	"testing"
	"time"

	"poolkeeper/configs/clock"
)

// owner is a Session that knows its number.
type owner struct {
	id        int64
	connected func()
	broken    []string
}

var errOther = errors.New("another session")

func (o *owner) Sending() error  { return nil }
func (o *owner) Connected(int64) { o.connected() }

func (o *owner) Broken(addr string, err error) { o.broken = append(o.broken, addr+": "+err.Error()) }

func (o *owner) Granted(id int64) error {
	if id != o.id {
		return errOther
	}
	return nil
}

// Mistakes: a server that says that the session has expired (number and time-out 0), or
// that grants another, renews the lease of ours, or has it last for ever; whoever waits
// for the first connection sees it before its time-out.
func TestWhatIsRefusedGrantsNoTime(t *testing.T) {
	t.Parallel()
	o := &owner{id: 7}
	g := NewGuard(o, clock.Clock{})
	told := 0
	o.connected = func() {
		if told++; g.Timeout() != 2*time.Second {
			t.Errorf("connected with the time-out %s", g.Timeout())
		}
	}
	if err := errors.Join(g.sending(make([]byte, 40)), g.connected(7, 2*time.Second)); err != nil || told != 1 {
		t.Fatalf("connected %d times, %v", told, err)
	}
	g.lease.restart()
	now := time.Now()
	left := g.Left(now)
	for id, timeout := range map[int64]time.Duration{0: 0, 8: time.Minute} {
		if err := errors.Join(g.sending(make([]byte, 40)), g.connected(id, timeout)); !errors.Is(err, errOther) {
			t.Errorf("session %d: %v", id, err)
		}
	}
	if g.Links() != 1 {
		t.Errorf("%d connections have served", g.Links())
	}
	g.broken("host", errOther)
	if len(o.broken) != 1 || o.broken[0] != "host: another session" {
		t.Errorf("told of %q", o.broken)
	}
	if g.Left(now) != left || g.Timeout() != 2*time.Second || told != 1 {
		t.Errorf("%s left of %s, was %s; connected %d times", g.Left(now), g.Timeout(), left, told)
	}
}
