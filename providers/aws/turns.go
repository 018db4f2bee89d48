package aws

import (
	"context"
	"sync"
	"time"

	"poolkeeper/configs/clock"
)

// turns let one caller in at a time, for each key. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the key is free
}

// enter waits for the turn of a key; done ends it.
func (t *turns) enter(ctx context.Context, key string) (done func(), err error) {
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

// cached keeps what is asked for often and changes seldom, by key. The zero value is ready.
type cached[T any] struct {
	mu   sync.Mutex
	kept map[string]kept[T]
}

type kept[T any] struct {
	value T
	until time.Time
}

// get gives the value of a key, which is asked for anew when it is older than age.
func (c *cached[T]) get(ctx context.Context, key string, age time.Duration, ask func(context.Context) (T, error)) (T, error) {
	now := clock.Now(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.kept[key]; ok && now.Before(one.until) {
		return one.value, nil
	}
	value, err := ask(ctx)
	if err == nil {
		if c.kept == nil {
			c.kept = map[string]kept[T]{}
		}
		c.kept[key] = kept[T]{value, now.Add(age)}
	}
	return value, err
}

// forget has all be asked for anew.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}
