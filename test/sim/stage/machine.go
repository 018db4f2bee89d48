package stage

import (
	"math/rand/v2"
	"sync"
	"time"

	"poolkeeper/test/sim/host"
)

// moment is how long after a pause a process may act as if there had been none: until it has
// seen what its timers say.
const moment = 10 * time.Millisecond

// Machine is what one process runs on: a clock that stops with it, and when that went on last.
// While it is paused its packets are withheld, too (Network).
type Machine struct {
	*host.Clock
	Name string // of its process, and its network

	mu      sync.Mutex
	paused  bool
	resumed time.Time
	goesOn  chan struct{} // closed when no pause is under way
}

// NewMachine makes one. order decides in which order timers fire whose time came during a pause.
func NewMachine(name string, order *rand.Rand) *Machine {
	goesOn := make(chan struct{})
	close(goesOn)
	return &Machine{Clock: host.NewClock(order), Name: name, goesOn: goesOn}
}

// Pause stops the process: its timers do not fire.
func (m *Machine) Pause() {
	m.Clock.Pause()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.paused {
		m.paused, m.goesOn = true, make(chan struct{})
	}
}

// Resume lets the process go on; its packets may come before its timers.
func (m *Machine) Resume() {
	go func() {
		m.Clock.Resume(func() { <-time.After(time.Millisecond) }) // all act before the next timer
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.paused {
			m.paused, m.resumed = false, time.Now()
			close(m.goesOn)
		}
	}()
}

// Awake returns when no pause is under way.
func (m *Machine) Awake() {
	m.mu.Lock()
	goesOn := m.goesOn
	m.mu.Unlock()
	<-goesOn
}

// JustResumed reports whether the machine is, or was a moment ago, paused.
func (m *Machine) JustResumed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paused || !m.resumed.IsZero() && time.Since(m.resumed) <= 2*moment
}
