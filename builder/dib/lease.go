package dib

import (
	"time"

	"poolkeeper/configs/planted"
)

// Limits says until when a build may go on. Its times are on a clock that counts the time that
// the machine slept, as Go's own timers do not: a build on a laptop that was closed, or on a
// virtual machine that was frozen, has lost its right meanwhile.
type Limits struct {
	lease time.Duration // all has ended by then, whatever else happens; 0 is for ever
	grace time.Duration // the command was asked to end, and has until then; 0 is not asked
}

// limitTick is how long a limit is relied on: clocks may jump while we sleep.
const limitTick = 100 * time.Millisecond

// Renew lets the lease end after d from now; 0 changes nothing.
func (l *Limits) Renew(now, d time.Duration) {
	if d > 0 && !planted.Bug("deadline") {
		l.lease = now + d
	}
}

// Ask gives the command d from now to end; it never gets more than it had.
func (l *Limits) Ask(now, d time.Duration) {
	if l.grace == 0 || now+d < l.grace {
		l.grace = now + d
	}
}

// Closing reports whether the lease ends so soon that the command must be asked to
// end now.
func (l *Limits) Closing(now time.Duration) bool { return l.lease > 0 && now >= l.lease-HasteGrace }

// Over reports whether the command must be killed.
func (l *Limits) Over(now time.Duration) bool {
	return l.grace > 0 && now >= l.grace || l.lease > 0 && now >= l.lease
}

// Next is when one of these changes, 0 when never without another word.
func (l *Limits) Next(now time.Duration) (in time.Duration) {
	for _, at := range []time.Duration{l.grace, l.lease, l.lease - HasteGrace} {
		if at > now && (in == 0 || at-now < in) {
			in = at - now
		}
	}
	return in
}

// next is when a guard asks again.
func (l *Limits) next(now time.Duration) time.Duration {
	if in := l.Next(now); in > 0 {
		return min(in, limitTick)
	}
	return limitTick
}
