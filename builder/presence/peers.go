package presence

import (
	"maps"
	"sync"
	"time"
)

// Peers remembers which builders were registered, and when they were seen
// last. Of those that it has never seen it thinks that they just left.
type Peers struct {
	mu    sync.Mutex
	since time.Time
	seen  map[string]time.Time
}

// NewPeers makes an empty one.
func NewPeers() *Peers { return &Peers{seen: map[string]time.Time{}} }

// Update takes over who is registered now, and returns when each was last.
func (r *Peers) Update(hosts map[string]bool, now time.Time) (seen map[string]time.Time, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		r.since = now // not earlier: ZooKeeper's clock was not read then
	}
	for host := range hosts {
		r.seen[host] = now
	}
	return maps.Clone(r.seen), r.since
}
