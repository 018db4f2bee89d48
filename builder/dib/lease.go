package dib

import (
	"time"

	"golang.org/x/sys/unix"
)

// limits says until when a build may go on. Its times are on the clock of
// sinceBoot, which counts the time that the machine slept, as Go's own timers do
// not: a build on a laptop that was closed, or on a virtual machine that was
// frozen, has lost its right meanwhile.
type limits struct {
	lease time.Duration // all has ended by then, whatever else happens; 0 is for ever
	grace time.Duration // the command was asked to end, and has until then; 0 is not asked
}

// limitTick is how long a limit is relied on: clocks may jump while we sleep.
const limitTick = 100 * time.Millisecond

// renew lets the lease end after d from now; 0 changes nothing.
func (l *limits) renew(now, d time.Duration) {
	if d > 0 {
		l.lease = now + d
	}
}

// ask gives the command d from now to end; it never gets more than it had.
func (l *limits) ask(now, d time.Duration) {
	if l.grace == 0 || now+d < l.grace {
		l.grace = now + d
	}
}

// closing reports whether the lease ends so soon that the command must be asked to
// end now.
func (l *limits) closing(now time.Duration) bool { return l.lease > 0 && now >= l.lease-HasteGrace }

// over reports whether the command must be killed.
func (l *limits) over(now time.Duration) bool {
	return l.grace > 0 && now >= l.grace || l.lease > 0 && now >= l.lease
}

// next is when to ask again.
func (l *limits) next(now time.Duration) time.Duration {
	wait := limitTick
	for _, at := range []time.Duration{l.grace, l.lease, l.lease - HasteGrace} {
		if at > now {
			wait = min(wait, at-now)
		}
	}
	return wait
}

// sinceBoot is a clock that never jumps and never stops.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
