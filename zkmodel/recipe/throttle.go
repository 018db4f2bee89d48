package recipe

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
)

// tellEvery is how often a log says that something cannot be read, or not be changed.
const tellEvery = time.Minute

// Throttle keeps a log readable when many things meet the same obstacle, again and
// again: one line a minute says so, and of how many it was not said. The zero
// Throttle goes by the host's clock; it is safe for use by several goroutines.
type Throttle struct {
	Clock clock.Clock

	mu     sync.Mutex
	told   time.Time
	hushed int
}

// Warn logs unless it did within the last minute, and reports whether it did.
func (t *Throttle) Warn(log hclog.Logger, message string, args ...any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Clock.Now()
	if !t.told.IsZero() && now.Sub(t.told) < tellEvery {
		t.hushed++
		log.Debug(message, args...)
		return false
	}
	if t.hushed > 0 {
		args = append(slices.Clip(args), "not_said", t.hushed)
	}
	t.told, t.hushed = now, 0
	log.Warn(message, args...)
	return true
}

// Failed logs that something failed with err: as Warn does if err says that we may not
// do it, which may be so for thousands of nodes, and in any case else.
func (t *Throttle) Failed(log hclog.Logger, err error, message string, args ...any) {
	args = append(slices.Clip(args), "error", err)
	if Unreadable(err) {
		t.Warn(log, message, args...)
		return
	}
	log.Warn(message, args...)
}
