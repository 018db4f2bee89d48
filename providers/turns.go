package providers

import (
	"context"
	"sync"
)

// Turns let one caller in at a time, for each key, in the drivers that need it. The zero value is
// ready.
type Turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the key is free
}

// Enter waits for the turn of a key; done ends it.
func (t *Turns) Enter(ctx context.Context, key string) (done func(), err error) {
	for {
		t.mu.Lock()
		before, taken := t.busy[key]
		if !taken {
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
