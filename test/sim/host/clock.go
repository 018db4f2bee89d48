package host

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"poolkeeper/configs/clock"
)

// Clock is the clock of one host, by that of the bubble. It is a clock.Source.
type Clock struct {
	mu     sync.Mutex // for moments
	order  *rand.Rand
	booted time.Time
	set    time.Duration // by how much its wall clock is ahead
	paused bool
	timers int      // that were asked for
	due    []*timer // whose time has come while it was paused, as they were asked for
}

// NewClock makes a Clock that shows the bubble's time. order decides in which order timers fire
// whose time came during a pause.
func NewClock(order *rand.Rand) *Clock { return &Clock{order: order, booted: time.Now()} }

// Now implements clock.Source. As on a host, what passes between two readings does not depend on
// how the wall clock was set between them; see monotonic.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return monotonic(now.Add(c.set), now.Sub(c.booted)+1)
}

// Set puts the wall clock forward, or back; timers and measured times know nothing of it.
func (c *Clock) Set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += by
}

// Pause has no timer fire and no deadline pass until Resume, as with SIGSTOP. Time goes on.
func (c *Clock) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
}

// Resume ends Pause: what was due fires, one after the other in any order. settle is called
// behind each, so that it can act before the next: synctest.Wait, or nothing at all.
func (c *Clock) Resume(settle func()) {
	for c.release() {
		settle()
	}
}

// release fires one timer that is due. Without one it ends the pause.
func (c *Clock) release() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.due) == 0 {
		c.paused = false
		return false
	}
	at := c.order.IntN(len(c.due))
	t := c.due[at]
	c.due = slices.Delete(c.due, at, at+1)
	t.fired = true
	go t.call()
	return true
}

// timer is one call that a Clock has been asked for.
type timer struct {
	clock *Clock
	call  func()
	real  *time.Timer
	seq   int // the bubble fires what is due at one instant in an order that no seed decides
	fired bool
}

// AfterFunc implements clock.Source.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Stopper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers++
	t := &timer{clock: c, call: f, seq: c.timers}
	t.real = time.AfterFunc(d, t.over)
	return t
}

// over fires the timer, or notes that it is due.
func (t *timer) over() {
	t.clock.mu.Lock()
	if t.clock.paused {
		at, _ := slices.BinarySearchFunc(t.clock.due, t, func(a, b *timer) int { return a.seq - b.seq })
		t.clock.due = slices.Insert(t.clock.due, at, t)
		t.clock.mu.Unlock()
		return
	}
	t.fired = true
	t.clock.mu.Unlock()
	t.call()
}

// Stop implements clock.Stopper.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if at := slices.Index(t.clock.due, t); at >= 0 {
		t.clock.due = slices.Delete(t.clock.due, at, at+1)
		return true
	}
	return t.real.Stop() && !t.fired
}

// monotonic is t with a reading of a monotonic clock, which times of a bubble have not. Package
// time has no other way to make one than time.Now, so this knows how it keeps both since Go 1.9:
// a flag, 33 bits of seconds since 1885, 30 bits of nanoseconds; then the monotonic reading.
func monotonic(t time.Time, since time.Duration) time.Time {
	const year1885 = -2682288000 // in Unix's seconds
	parts := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t))
	parts.wall = 1<<63 | uint64(t.Unix()-year1885)<<30 | uint64(t.Nanosecond())
	parts.ext = int64(since)
	return t
}
