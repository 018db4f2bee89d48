package figures

import (
	"sync"
	"time"
)

// Reloads remembers how the configuration was read. Its methods may be called at any time.
type Reloads struct {
	mu   sync.Mutex
	bad  bool
	good time.Time // when it was taken last
}

// NewReloads begins with a configuration that was taken at a time.
func NewReloads(at time.Time) *Reloads { return &Reloads{good: at} }

// Note takes over how a reload at a time went; a nil Reloads takes nothing.
func (r *Reloads) Note(at time.Time, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = err != nil
	if err == nil {
		r.good = at
	}
}

func (r *Reloads) last() (ok bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.bad, r.good
}
