package disk

import (
	"context"
	"sync"
)

// turns lets one at a time do something about one file, others about others.
type turns struct {
	mu    sync.Mutex
	inUse map[string]*turn
}

type turn struct {
	token chan struct{} // holds one value while nobody has the turn
	users int
}

// enter waits for the turn of key; release gives it on.
func (t *turns) enter(ctx context.Context, key string) (release func(), err error) {
	t.mu.Lock()
	if t.inUse == nil {
		t.inUse = map[string]*turn{}
	}
	u := t.inUse[key]
	if u == nil {
		u = &turn{token: make(chan struct{}, 1)}
		u.token <- struct{}{}
		t.inUse[key] = u
	}
	u.users++
	t.mu.Unlock()

	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.users--; u.users == 0 {
			delete(t.inUse, key)
		}
	}
	select {
	case <-u.token:
		return func() { u.token <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
