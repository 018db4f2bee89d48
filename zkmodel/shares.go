package zkmodel

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs/kit"
)

// shareDelay is how long what a daemon took or gave up waits to be told: much comes at
// once, and what is over in a moment need not be told at all.
const shareDelay = time.Second

// Shares are what one daemon does for all at the moment: duties, elections that it has
// won, searches, waves that it drives. Its component record names them, so that people
// see who does what; nothing else depends on that. Any goroutine may use it. A nil one
// remembers nothing.
type Shares struct {
	now     func() time.Time
	changed chan struct{}

	mu   sync.Mutex
	held map[string]share
}

// share is one of them.
type share struct {
	since time.Time
	times int // that it is held: a new session may begin with it before the last has ended
}

// NewShares makes an empty one; now nil is time.Now.
func NewShares(now func() time.Time) *Shares {
	if now == nil {
		now = time.Now
	}
	return &Shares{now: now, changed: make(chan struct{}, 1), held: map[string]share{}}
}

// ShareName is how records name what lies at a path below OwnRoot.
func ShareName(path string) string { return strings.TrimPrefix(path, OwnRoot+"/") }

// Hold notes that the share of a path is this daemon's, until the function that it
// returns is called.
func (s *Shares) Hold(path string) (release func()) {
	if s == nil {
		return func() {}
	}
	name := ShareName(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.held[name]
	if one.times++; one.times == 1 {
		one.since = s.now()
	}
	s.held[name] = one
	s.note()
	return sync.OnceFunc(func() { s.release(name) })
}

func (s *Shares) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.held[name]
	if one.times--; one.times > 0 {
		s.held[name] = one
		return
	}
	delete(s.held, name)
	s.note()
}

// note wakes Follow. The caller holds the lock.
func (s *Shares) note() {
	select {
	case s.changed <- struct{}{}:
	default: // it is awake
	}
}

// Held are the shares by name, with the time since when; nil for none.
func (s *Shares) Held() map[string]Epoch {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 {
		return nil
	}
	held := map[string]Epoch{}
	for name, one := range s.held {
		held[name] = EpochOf(one.since)
	}
	return held
}

// Follow tells what is held whenever that has changed, a moment later, until ctx ends.
// One goroutine at a time follows; it knows that nothing was told before.
func (s *Shares) Follow(ctx context.Context, tell func(map[string]Epoch)) {
	if s == nil {
		return
	}
	var told map[string]Epoch
	for kit.Sleep(ctx, shareDelay) == nil {
		if now := s.Held(); !maps.Equal(now, told) {
			told = now
			tell(now)
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
		}
	}
}
