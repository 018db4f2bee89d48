// Package clock is the time that an agent goes by: what it reads, and what its timers and
// deadlines wait for. All that a daemon does takes the time from one Clock, so that a
// simulation can stop one host and let the others go on.
package clock

import (
	"context"
	"time"
)

// Clock does what the functions of package time and the deadlines of package context do. The
// zero Clock is the host's, and costs nothing more than these.
type Clock struct{ source Source }

// Source is a clock of one's own.
type Source interface {
	// Now is its time.
	Now() time.Time
	// AfterFunc calls f in a goroutine once d has passed by it, unless it is stopped before.
	AfterFunc(d time.Duration, f func()) Stopper
}

// Stopper ends the wait of a timer; it reports whether it comes before the timer's end.
type Stopper interface{ Stop() bool }

// From is the Clock that goes by s.
func From(s Source) Clock { return Clock{s} }

// Now is time.Now.
func (c Clock) Now() time.Time {
	if c.source == nil {
		return time.Now()
	}
	return c.source.Now()
}

// Since is time.Since.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is time.Until.
func (c Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// AfterFunc is time.AfterFunc.
func (c Clock) AfterFunc(d time.Duration, f func()) Stopper {
	if c.source == nil {
		return time.AfterFunc(d, f)
	}
	return c.source.AfterFunc(d, f)
}

// After is time.After.
func (c Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C }

// Sleep waits for d, which may be 0 or less. It returns the cause of ctx's end when that
// comes first.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
