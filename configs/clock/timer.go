package clock

import (
	"sync"
	"time"
)

// Timer is a time.Timer by a Clock.
type Timer struct {
	C    <-chan time.Time
	wait interface {
		Stop() bool
		Reset(d time.Duration) bool
	}
}

// Stop is that of time.Timer: nothing comes from C after it.
func (t *Timer) Stop() bool { return t.wait.Stop() }

// Reset is that of time.Timer: nothing of the wait before comes from C after it.
func (t *Timer) Reset(d time.Duration) bool { return t.wait.Reset(d) }

// NewTimer is time.NewTimer.
func (c Clock) NewTimer(d time.Duration) *Timer {
	if c.source == nil {
		timer := time.NewTimer(d)
		return &Timer{C: timer.C, wait: timer}
	}
	w := &wait{clock: c, c: make(chan time.Time, 1)}
	w.Reset(d)
	return &Timer{C: w.c, wait: w}
}

// Ticker is a time.Ticker by a Clock.
type Ticker struct {
	C    <-chan time.Time
	stop func()
}

// Stop is that of time.Ticker.
func (t *Ticker) Stop() { t.stop() }

// NewTicker is time.NewTicker.
func (c Clock) NewTicker(every time.Duration) *Ticker {
	if c.source == nil {
		ticker := time.NewTicker(every)
		return &Ticker{C: ticker.C, stop: ticker.Stop}
	}
	w := &wait{clock: c, c: make(chan time.Time, 1), every: every}
	w.Reset(every)
	return &Ticker{C: w.c, stop: func() { w.Stop() }}
}

// wait is a timer, or a ticker, by a Source.
type wait struct {
	clock Clock
	c     chan time.Time
	every time.Duration // of a ticker

	mu     sync.Mutex // for moments
	round  int        // of waits: what ends another than this one is not told
	timing Stopper    // nil when nothing is waited for
}

// Stop ends the wait.
func (w *wait) Stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop()
}

// Reset begins another.
func (w *wait) Reset(d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := w.stop()
	w.begin(d)
	return waited
}

// stop takes back what has been told, and not heard, as package time does.
func (w *wait) stop() (waited bool) {
	if waited = w.timing != nil; waited {
		w.timing.Stop()
	}
	select {
	case <-w.c:
		waited = true
	default:
	}
	w.round, w.timing = w.round+1, nil
	return waited
}

func (w *wait) begin(d time.Duration) {
	round := w.round
	w.timing = w.clock.AfterFunc(d, func() { w.over(round) })
}

// over tells that the time of a round has come.
func (w *wait) over(round int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if round != w.round {
		return
	}
	select {
	case w.c <- w.clock.Now():
	default: // a tick that nobody has heard
	}
	if w.timing = nil; w.every > 0 {
		w.begin(w.every)
	}
}
