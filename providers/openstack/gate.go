package openstack

import (
	"context"
	"sync"
	"time"

	"poolkeeper/providers"
)

// roomAge is how long the free room is believed. Others use the project, too.
const roomAge = time.Minute

// gate lets servers be created side by side as long as the project has room
// for them, and one by one when it may not. Nova counts before and after it
// accepts a server, and of several that arrive together at the edge of the
// quota it accepts some, and lets them fail later, that it should have refused.
type gate struct {
	ask func(context.Context) (providers.Resources, error) // the free room

	mu      sync.Mutex
	inside  int  // creations under way
	alone   bool // the one that is inside must stay the only one
	room    providers.Resources
	until   time.Time
	changed chan struct{} // closed when somebody left, or need not be alone
}

func newGate(ask func(context.Context) (providers.Resources, error)) *gate {
	return &gate{ask: ask, changed: make(chan struct{})}
}

// enter waits for the permission to create a server. The caller leaves when
// Nova has answered.
func (g *gate) enter(ctx context.Context, need providers.Resources) (leave func(), err error) {
	for {
		g.mu.Lock()
		fits := !g.alone && g.take(need)
		if fits || g.inside == 0 {
			g.inside++
			g.alone = !fits
			g.mu.Unlock()
			if !fits {
				g.learn(ctx, need)
			}
			return g.leave, nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// learn asks for the free room while its caller is alone. If there is room, the
// caller need not be alone any more; if not, or nobody knows, Nova decides.
func (g *gate) learn(ctx context.Context, need providers.Resources) {
	room, err := g.ask(ctx)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room, g.until = room, time.Now().Add(roomAge)
	if g.take(need) {
		g.alone = false
		g.tell()
	}
}

// leave lets others in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.alone = false
	g.tell()
}

// tell wakes those who wait. The caller holds the lock.
func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// take takes need from the room that is known to be free. The caller holds the lock.
func (g *gate) take(need providers.Resources) bool {
	if time.Now().After(g.until) {
		return false
	}
	for name, n := range need {
		if free, limited := g.room[name]; limited && free < n {
			return false
		}
	}
	for name, n := range need {
		if _, limited := g.room[name]; limited {
			g.room[name] -= n
		}
	}
	return true
}

// full notes that Nova refused for lack of room.
func (g *gate) full() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Time{}
}
