package recipe_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// Reads and writes are told apart, each once, and a client tells whether it has a session.
// Mistake: latency that counts what was never answered, or a session that ended as alive.
func TestClientIsObserved(t *testing.T) {
	root := "/observed-" + time.Now().Format("150405.000000000")
	c, proxy := proxied(t, root, timeout(20*time.Second))
	other := session(t, dial(t, root))
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var reads, writes atomic.Int64
	c.SetObserver(func(write bool, _ time.Duration) {
		if write {
			writes.Add(1)
		} else {
			reads.Add(1)
		}
	})
	if _, err := s.Create(t.Context(), "/a", nil, recipe.Persistent); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), "/a", []byte("x"), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	if reads.Load() != 1 || writes.Load() != 2 {
		t.Errorf("%d reads, %d writes, want 1 and 2", reads.Load(), writes.Load())
	}
	if _, _, err := s.Get(t.Context(), "/none"); !errors.Is(err, recipe.ErrNoNode) || reads.Load() != 2 {
		t.Errorf("%v, %d reads: an answer that there is nothing is one", err, reads.Load())
	}
	if _, err := s.Create(t.Context(), "/b", make([]byte, 2<<20), recipe.Persistent); err == nil || writes.Load() != 2 {
		t.Errorf("%v, %d writes: what was never sent is counted", err, writes.Load())
	}
	proxy.CutDown()
	lost := make(chan error, 1)
	go func() { _, err := s.Set(t.Context(), "/a", []byte("y"), recipe.AnyVersion); lost <- err }()
	zktest.Eventually(t, func() bool {
		data, _, err := other.Get(t.Context(), "/a")
		return err == nil && string(data) == "y"
	}, "the write to be applied")
	proxy.Break()
	proxy.Heal()
	if err := <-lost; !errors.Is(err, recipe.ErrConnectionLost) {
		t.Errorf("the write ended with %v", err)
	}
	if reads.Load() != 2 || writes.Load() != 2 {
		t.Errorf("%d reads, %d writes, want 2 and 2: what was not answered is counted", reads.Load(), writes.Load())
	}
	c.SetObserver(nil)
	if err := s.Sync(t.Context()); err != nil || reads.Load() != 2 {
		t.Errorf("%d reads (%v) after nobody asks", reads.Load(), err)
	}
	if state := c.State(); !state.Alive || state.Left <= 0 || state.Sessions != 1 {
		t.Errorf("state %+v", state)
	}
	c.Close()
	if state := c.State(); state.Alive || state.Left != 0 || state.Sessions != 1 {
		t.Errorf("state after the end %+v", state)
	}
}
