package aws

import (
	"context"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// cached keeps what is asked for often and changes seldom, by key. The zero value is ready. Who waits for
// the answer to another's question can be called off.
type cached[T any] struct {
	turns providers.Turns
	mu    sync.Mutex
	kept  map[string]kept[T]
}

type kept[T any] struct {
	value T
	until time.Time
}

// get gives the value of a key, which is asked for anew when it is older than age.
func (c *cached[T]) get(ctx context.Context, key string, age time.Duration, ask func(context.Context) (T, error)) (T, error) {
	if value, ok := c.known(ctx, key); ok {
		return value, nil
	}
	done, err := c.turns.Enter(ctx, key)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	if value, ok := c.known(ctx, key); ok {
		return value, nil
	}
	now := clock.Now(ctx)
	value, err := ask(ctx)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.kept == nil {
			c.kept = map[string]kept[T]{}
		}
		c.kept[key] = kept[T]{value, now.Add(age)}
	}
	return value, err
}

func (c *cached[T]) known(ctx context.Context, key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.kept[key]
	return one.value, ok && clock.Now(ctx).Before(one.until)
}

// forget has all be asked for anew.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}
