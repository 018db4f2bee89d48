package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"poolkeeper/configs/clock"
)

// host is where one agent runs: its clock, which stops with it. While a host is paused its
// timers do not fire, and the world withholds its packets; its time goes on, as that of a
// machine does whose process is stopped.
type host struct {
	mu      sync.Mutex
	paused  bool
	held    []*timer // that would have fired
	resumed time.Time
	rng     *rand.Rand
}

type timer struct {
	host  *host
	f     func()
	timer *time.Timer
	over  bool
}

// Now implements clock.Source.
func (h *host) Now() time.Time { return time.Now() }

// AfterFunc implements clock.Source.
func (h *host) AfterFunc(d time.Duration, f func()) clock.Stopper {
	t := &timer{host: h, f: f}
	h.mu.Lock()
	defer h.mu.Unlock()
	t.timer = time.AfterFunc(d, t.fire)
	return t
}

func (t *timer) fire() {
	t.host.mu.Lock()
	if t.host.paused && !t.over {
		t.host.held = append(t.host.held, t)
		t.host.mu.Unlock()
		return
	}
	run := !t.over
	t.over = true
	t.host.mu.Unlock()
	if run {
		t.f()
	}
}

// Stop implements clock.Stopper.
func (t *timer) Stop() bool {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	t.timer.Stop()
	was := !t.over
	t.over = true
	return was
}

func (h *host) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = true
}

// resume has the timers that were held fire within a moment, in any order.
func (h *host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused, h.resumed = false, time.Now()
	for _, t := range h.held {
		t.timer = time.AfterFunc(time.Duration(h.rng.Int64N(int64(moment))), t.fire)
	}
	h.held = nil
}

// moment is how long after a pause an agent may act as if there had been none: until all of
// its timers have fired, and it has seen what they say.
const moment = 10 * time.Millisecond

// justResumed reports whether the host is, or was a moment ago, paused.
func (h *host) justResumed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paused || !h.resumed.IsZero() && time.Since(h.resumed) <= 2*moment
}
