package openstack

import (
	"context"
	"errors"
	"sync"
	"time"

	"poolkeeper/providers"
)

// cached remembers the answer of one question for a while. Those who ask while
// the cloud is being asked wait for that answer.
type cached[T any] struct {
	age  time.Duration
	aged func(T) time.Duration // the age of an answer; nil is age for all

	mu     sync.Mutex
	asking chan struct{} // closed when whoever asks has done so
	value  T
	read   time.Time
	until  time.Time
}

// seek finds something in a cached answer. If it is missing, the cloud is asked again: it may exist by now.
func seek[T, U any](ctx context.Context, c *cached[T], now func() time.Time, ask func(context.Context) (T, error), find func(T) (U, error)) (U, error) {
	for start := now(); ; {
		var found U
		all, err := c.get(ctx, now, ask)
		if err == nil {
			found, err = find(all)
		}
		if !errors.Is(err, providers.ErrInvalid) || !c.forgetOlder(start) {
			return found, err
		}
	}
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
	began := now()
	value, err := ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking)
	c.asking = nil
	if err == nil {
		age := c.age
		if c.aged != nil {
			age = c.aged(value)
		}
		c.value, c.read, c.until = value, began, began.Add(age)
	}
	return value, err
}

// forget makes the next get ask again.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// forgetOlder is forget for an answer that was read before t. It reports whether it was.
func (c *cached[T]) forgetOlder(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.read.Before(t)
	if old {
		c.until = time.Time{}
	}
	return old
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
