package host_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: a lease that a pause of its host does not stop, and so one that hides that a paused
// process still believes in its lock; one that the end of the pause does not end, before anything
// is written; a fence that lets such a write through.
func TestPausedSessionBelievesInItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zookeeper.New(zookeeper.Options{Servers: 3})
		defer cluster.Close()
		dial := func(name string, c *clock.Clock) *recipe.Session {
			cfg := recipe.Config{Servers: cluster.Addrs(), Timeout: 6 * time.Second, Dial: cluster.Dialer(name)}
			if c != nil {
				cfg.Clock = *c
			}
			client, err := recipe.Dial(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			s, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		stopped := newClock(1)
		own := clock.From(stopped)
		paused, other := dial("paused", &own), dial("other", nil)
		held, err := recipe.NewLock(paused, "/lock", "").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped.Pause()
		cluster.Cut("paused")
		pass(time.Minute)
		next, err := recipe.NewLock(other, "/lock", "").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held.Lost() != nil {
			t.Fatalf("the paused host knows already that its lock is lost: %v", held.Lost())
		}
		if left := paused.Left(); left > -50*time.Second {
			t.Errorf("after a minute its lease has %s left", left)
		}
		cluster.Heal("paused")
		if _, err := held.Create(t.Context(), "/written", nil, recipe.Persistent); err == nil {
			t.Error("a host that was paused has written behind a lost lock")
		}
		stopped.Resume(synctest.Wait)
		if !errors.Is(held.Lost(), recipe.ErrSessionLost) {
			t.Errorf("behind the pause: %v", held.Lost())
		}
		if next.Lost() != nil {
			t.Errorf("the other's lock: %v", next.Lost())
		}
	})
}

// Mistakes: a mutex that is held over a wait: the bubble's clock stands still when a lock is taken
// away while its holder waits for the answer to what ends it.
func TestLockEndsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zookeeper.New(zookeeper.Options{Servers: 3})
		defer cluster.Close()
		dial := func(name string) *recipe.Session {
			client, err := recipe.Dial(recipe.Config{Servers: cluster.Addrs(), Timeout: 30 * time.Second, Dial: cluster.Dialer(name)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			s, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		holder, thief := dial("holder"), dial("thief")
		for early := range 8 {
			held, err := recipe.NewLock(holder, "/record/lock", "", recipe.EnsureParents()).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			cluster.Slow("holder", time.Second)
			done := make(chan error)
			go func() { done <- held.DeleteTree(t.Context(), "/record") }()
			pass(time.Duration(early) * 500 * time.Millisecond)
			if err := thief.Delete(t.Context(), held.Path(), recipe.AnyVersion); err != nil && !errors.Is(err, recipe.ErrNoNode) {
				t.Error(err)
			}
			if err := <-done; err != nil && !errors.Is(err, recipe.ErrFenceLost) {
				t.Error(err)
			}
			cluster.Heal("holder")
			pass(time.Minute)
			if held.Lost() == nil {
				t.Error("the lock was taken away, and is held")
			}
		}
	})
}
