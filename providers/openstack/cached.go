package openstack

import (
	"context"
	"sync"
	"time"
)

// cached remembers the answer of one question for a while. Those who ask while
// the cloud is being asked wait for that answer.
type cached[T any] struct {
	age time.Duration

	mu     sync.Mutex
	asking chan struct{} // closed when whoever asks has done so
	value  T
	until  time.Time
}

// get gives the answer, from ask when it is not known.
func (c *cached[T]) get(ctx context.Context, now func() time.Time, ask func(context.Context) (T, error)) (T, error) {
	for {
		c.mu.Lock()
		if now().Before(c.until) {
			defer c.mu.Unlock()
			return c.value, nil
		}
		wait := c.asking
		if wait == nil {
			c.asking = make(chan struct{})
			c.mu.Unlock()
			return c.ask(ctx, now, ask)
		}
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			var nothing T
			return nothing, context.Cause(ctx)
		}
	}
}

func (c *cached[T]) ask(ctx context.Context, now func() time.Time, ask func(context.Context) (T, error)) (T, error) {
	value, err := ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking)
	c.asking = nil
	if err == nil {
		c.value, c.until = value, now().Add(c.age)
	}
	return value, err
}

// forget makes the next get ask again.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// keyed is a lock a key, whose holders may give up waiting.
type keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits until key is free, and gives the function that frees it again.
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		k.mu.Lock()
		busy, ok := k.held[key]
		if !ok {
			mine := make(chan struct{})
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			k.held[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.held, key)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
