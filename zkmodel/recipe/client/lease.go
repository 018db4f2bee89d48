package client

import (
	"slices"
	"sync"
	"time"
)

// markEvery is the resolution at which a lease remembers when requests were sent.
const markEvery = 5 * time.Millisecond

// lease knows how long a session can be trusted without another word from a
// server. A server counts a session's time from the last request that it heard,
// so the lease runs from the moment when the youngest request was sent that has
// surely been heard: one connection answers each request once, hence after k
// answers at least one request that was not sent before the k-th has arrived.
// Watch events prove nothing (a server sends them to a client that it no longer
// hears) and are not counted. Times carry the monotonic clock.
type lease struct {
	mu       sync.Mutex
	timeout  time.Duration // granted by the server; 0 before that
	heard    time.Time
	sent     uint64
	answered uint64
	marks    []mark
}

// mark is the time at which the n-th request of a connection was sent.
type mark struct {
	n  uint64
	at time.Time
}

// restart forgets the requests of an earlier connection; their answers will not come.
func (l *lease) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.answered, l.marks = 0, 0, l.marks[:0]
}

// send notes that a request goes out now.
func (l *lease) send(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if n := len(l.marks); n == 0 || now.Sub(l.marks[n-1].at) >= markEvery {
		l.marks = append(l.marks, mark{l.sent, now})
	}
}

// answer notes that a server answered one more request.
func (l *lease) answer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered++
	i := 0
	for i < len(l.marks) && l.marks[i].n <= l.answered {
		l.heard = l.marks[i].at
		i++
	}
	l.marks = slices.Delete(l.marks, 0, i)
}

// grant sets the time-out that the server granted.
func (l *lease) grant(timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = timeout
}

// left returns how long the lease still runs; before the first grant, for ever.
func (l *lease) left(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timeout == 0 {
		return 1<<63 - 1
	}
	return l.timeout - now.Sub(l.heard)
}
