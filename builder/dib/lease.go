package dib

import (
	"time"

	"golang.org/x/sys/unix"
)

// lease is a timer that is renewed. It counts the time that the machine slept,
// which Go's own timers do not: a build on a laptop that was closed, or on a
// virtual machine that was frozen, has lost its right meanwhile.
type lease struct {
	ticker *time.Ticker
	until  time.Duration // since boot
}

// leaseTick is how late the end of a lease may be noticed.
const leaseTick = 100 * time.Millisecond

// newLease starts a lease; none when it is 0.
func newLease(d time.Duration) *lease {
	l := &lease{}
	l.renew(d)
	return l
}

// renew lets the lease end after d from now; 0 changes nothing.
func (l *lease) renew(d time.Duration) {
	if d <= 0 {
		return
	}
	l.until = sinceBoot() + d
	if l.ticker == nil {
		l.ticker = time.NewTicker(leaseTick)
	}
}

// C delivers when it is time to ask expired again.
func (l *lease) C() <-chan time.Time {
	if l.ticker == nil {
		return nil
	}
	return l.ticker.C
}

// expired tells whether the lease is over.
func (l *lease) expired() bool { return l.ticker != nil && sinceBoot() >= l.until }

func (l *lease) stop() {
	if l.ticker != nil {
		l.ticker.Stop()
	}
}

// sinceBoot is a clock that never jumps and never stops.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
