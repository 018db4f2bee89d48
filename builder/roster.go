package builder

import (
	"maps"
	"sync"
	"time"
)

// roster remembers which builders were registered, and when they were seen
// last. Of those that it has never seen it thinks that they just left.
type roster struct {
	mu    sync.Mutex
	since time.Time
	seen  map[string]time.Time
}

func newRoster(now time.Time) *roster { return &roster{since: now, seen: map[string]time.Time{}} }

// update takes over who is registered now, and returns when each was last.
func (r *roster) update(hosts map[string]bool, now time.Time) (seen map[string]time.Time, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for host := range hosts {
		r.seen[host] = now
	}
	return maps.Clone(r.seen), r.since
}
