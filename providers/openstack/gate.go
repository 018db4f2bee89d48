package openstack

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"poolkeeper/providers"
)

// everyone is the weight of a creation that must be alone.
const everyone = math.MaxInt32

// roomAge is how long the free room is believed. Others use the project, too.
const roomAge = time.Minute

// gate lets servers be created side by side as long as the project has room
// for them, and one by one when it may not. Nova counts before and after it
// accepts a server, and of several that arrive together at the edge of the
// quota it accepts some, and lets them fail later, that it should have refused.
type gate struct {
	ask func(context.Context) (providers.Resources, error) // the free room

	crowd *semaphore.Weighted

	mu    sync.Mutex
	room  providers.Resources
	until time.Time
}

func newGate(ask func(context.Context) (providers.Resources, error)) *gate {
	return &gate{ask: ask, crowd: semaphore.NewWeighted(everyone)}
}

// enter waits for the permission to create a server. The caller leaves when
// Nova has answered.
func (g *gate) enter(ctx context.Context, need providers.Resources) (leave func(), err error) {
	if g.take(need) {
		if err := g.crowd.Acquire(ctx, 1); err != nil {
			return nil, context.Cause(ctx)
		}
		return func() { g.crowd.Release(1) }, nil
	}
	if err := g.crowd.Acquire(ctx, everyone); err != nil {
		return nil, context.Cause(ctx)
	}
	if !g.take(need) && !g.learn(ctx, need) {
		return func() { g.crowd.Release(everyone) }, nil // alone: Nova decides
	}
	g.crowd.Release(everyone - 1)
	return func() { g.crowd.Release(1) }, nil
}

// learn asks for the free room, and takes from it. Nobody is creating a server.
func (g *gate) learn(ctx context.Context, need providers.Resources) bool {
	room, err := g.ask(ctx)
	if err != nil {
		return false
	}
	g.mu.Lock()
	g.room, g.until = room, time.Now().Add(roomAge)
	g.mu.Unlock()
	return g.take(need)
}

// take takes need from the room that is known to be free.
func (g *gate) take(need providers.Resources) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
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
