package recipe

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs/clock"
)

// The pause before another round through the servers, after one in which none let us in.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// hosts is the list of servers, shared by all sessions of a Client. Every
// session starts at a random place, and tries them in turn.
type hosts struct {
	clock clock.Clock
	draws rand.Source // nil is the runtime's

	mu       sync.Mutex
	list     []string
	next     int
	failures int       // connections tried since one was accepted
	accepts  time.Time // when the last one was
}

func newHosts(list []string, c clock.Clock, draws rand.Source) *hosts {
	h := &hosts{clock: c, draws: draws}
	h.set(list)
	return h
}

// set replaces the list.
func (h *hosts) set(list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list = slices.Clone(list)
	for i := range list {
		j := int(h.draw(int64(i + 1)))
		list[i], list[j] = list[j], list[i]
	}
	h.list, h.next, h.failures, h.accepts = list, 0, 0, time.Time{}
}

// draw is a number below n; the caller holds mu.
func (h *hosts) draw(n int64) int64 {
	if h.draws == nil {
		return rand.Int64N(n)
	}
	return rand.New(h.draws).Int64N(n)
}

// has reports whether addr is in the list.
func (h *hosts) has(addr string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.list, addr)
}

// all returns the list.
func (h *hosts) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// pick returns the server to try next.
func (h *hosts) pick() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return h.list[h.next%len(h.list)]
}

// pause waits before a connection is tried: not at all in the first round, then
// ever longer, with jitter. It counts the try as failed until accepted says
// otherwise, and the first round as over if we were let in just now: what made the
// server drop us will not have passed.
func (h *hosts) pause(ctx context.Context) error {
	h.mu.Lock()
	if h.failures == 0 && h.clock.Since(h.accepts) < lastPause {
		h.failures = len(h.list)
	}
	round := h.failures / len(h.list)
	h.failures++
	wait := min(firstPause<<min(max(round-1, 0), 10), lastPause)
	wait = wait/2 + time.Duration(h.draw(int64(wait/2)))
	h.mu.Unlock()
	if round == 0 {
		return ctx.Err()
	}
	return h.clock.Sleep(ctx, wait)
}

// accepted notes that a server gave us a session, or let us go on with ours.
func (h *hosts) accepted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.accepts = 0, h.clock.Now()
}

// hostProvider shows hosts to the client library for one session.
type hostProvider struct {
	*hosts
	over <-chan struct{} // the session has ended
}

// Init takes nothing over: the library's list is a copy of what hosts has.
func (hostProvider) Init([]string) error { return nil }

// Len returns the number of servers.
func (p hostProvider) Len() int { return len(p.all()) }

// Next returns the next server. Its second result makes the library look whether
// it was told to quit, which it does not do otherwise; pauses are our own.
func (p hostProvider) Next() (string, bool) {
	select {
	case <-p.over:
		return p.pick(), true
	default:
		return p.pick(), false
	}
}

// Connected is told in the tap already.
func (hostProvider) Connected() {}
