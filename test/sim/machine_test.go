package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"poolkeeper/test/sim/host"
)

// moment is how long after a pause an agent may act as if there had been none: until it has
// seen what its timers say.
const moment = 10 * time.Millisecond

// machine is what one agent runs on: a clock that stops with it, and when that went on last.
// While it is paused the world withholds its packets, too.
type machine struct {
	*host.Clock

	mu      sync.Mutex
	paused  bool
	resumed time.Time
}

func newMachine(rng *rand.Rand) *machine { return &machine{Clock: host.NewClock(rng)} }

func (m *machine) pause() {
	m.Pause()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = true
}

// resume lets the agent go on; its packets may come before its timers.
func (m *machine) resume() {
	go func() {
		m.Resume(func() { time.Sleep(time.Millisecond) }) //nolint:forbidigo // in a bubble: all act before the next timer
		m.mu.Lock()
		defer m.mu.Unlock()
		m.paused, m.resumed = false, time.Now()
	}()
}

// justResumed reports whether the machine is, or was a moment ago, paused.
func (m *machine) justResumed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paused || !m.resumed.IsZero() && time.Since(m.resumed) <= 2*moment
}
