package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Mistakes: clients of ours that need another server than the model, or another clock than
// the bubble's; two that hold one lock; a lock that nobody gets any more.
func TestRecipeRunsOnTheModel(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		holders, turns := 0, 0
		done := make(chan error)
		names := []string{"a", "b", "c"}
		for _, name := range names {
			client, err := recipe.Dial(recipe.Config{Servers: c.Addrs(), Chroot: "/root", Timeout: 6 * time.Second, Dial: c.Dialer(name)})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			go func() {
				done <- client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
					for ctx.Err() == nil {
						held, err := recipe.NewLock(s, "/lock", name).Acquire(ctx)
						if err != nil {
							return fmt.Errorf("lock: %w", err)
						}
						if holders++; holders > 1 {
							t.Error("two hold the lock")
						}
						select {
						case <-time.After(100 * time.Millisecond):
						case <-held.Context().Done():
						}
						turns++
						holders--
						if err := held.Release(ctx); err != nil {
							return fmt.Errorf("release: %w", err)
						}
					}
					return ctx.Err()
				})
			}()
		}
		faults := []func(){
			func() { c.Break("a") }, c.LeaderChange, func() { c.Lag(1, time.Second) }, func() { c.DropAnswer("b") }, func() { c.Lag(1, 0) },
		}
		for _, fault := range faults {
			pause(10 * time.Second)
			fault()
		}
		pause(20 * time.Second)
		cancel()
		for range names {
			if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, recipe.ErrLocked) {
				t.Error(err)
			}
		}
		if turns < 200 {
			t.Errorf("the lock was held %d times in a minute", turns)
		}
	})
}
