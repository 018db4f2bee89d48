package recipe_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: the answer to a write is lost, and with it the lock; the next holder has written the
// same meanwhile, which is taken for our own write. Two then believe that they did it.
func TestWriteOfTheNextHolderIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zookeeper.New(zookeeper.Options{})
		defer c.Close()
		begin := func(name string) *recipe.Session {
			client, err := recipe.Dial(recipe.Config{Servers: c.Addrs(), Dial: c.Dialer(name)})
			must(t, err)
			t.Cleanup(client.Close)
			s, err := client.Session(t.Context())
			must(t, err)
			return s
		}
		first, second := begin("first"), begin("second")
		must(t, first.EnsurePath(t.Context(), "/record"))
		held, err := recipe.NewLock(first, "/lock", "").Acquire(t.Context())
		must(t, err)
		c.Cut("first")
		result := make(chan error)
		go func() {
			_, err := held.Set(t.Context(), "/record", []byte("taken"), 0)
			result <- err
		}()
		<-time.After(time.Second)
		must(t, second.Delete(t.Context(), held.Path(), recipe.AnyVersion))
		next, err := recipe.NewLock(second, "/lock", "").Acquire(t.Context())
		must(t, err)
		_, err = next.Set(t.Context(), "/record", []byte("taken"), 0)
		must(t, err)
		c.Break("first")
		c.Heal("first")
		if err := <-result; !errors.Is(err, recipe.ErrFenceLost) {
			t.Errorf("a write that another made: %v", err)
		}
	})
}
