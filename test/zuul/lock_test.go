package zuul

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
)

// Who gives up waiting for a lock as the connection breaks is out of the line
// afterwards, though its session lives on: it would hold the lock when its turn comes,
// and know nothing of it.
func TestGivenUpLockIsNotHeld(t *testing.T) {
	root := zktest.Root(t)
	addr := zktest.Shared(t).Addr()
	proxy := zktest.StartProxy(t, addr)
	dial := func(addr string) *Client {
		c, err := Dial(t.Context(), []string{addr}, root, "zuul")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	holder, waiter := dial(addr), dial(proxy.Addr())
	id, err := holder.Submit(Wish{Labels: []string{"small"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := waiter.Revise(t.Context(), id, 1); err != nil { // makes the folders
		t.Fatal(err)
	}
	held, err := holder.lock(t.Context(), holder.path("/requests-lock/%s", id))
	if err != nil {
		t.Fatal(err)
	}
	line := func() int {
		names, _, err := holder.conn.Children(holder.path("/requests-lock/%s", id))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := waiter.lock(ctx, waiter.path("/requests-lock/%s", id))
		done <- err
	}()
	zktest.Eventually(t, func() bool { return line() == 2 }, "the waiter is in line")
	proxy.Cut()
	giveUp()
	<-time.After(100 * time.Millisecond) // it is deleting its contender, in vain
	proxy.Break()
	proxy.Heal()
	if err := <-done; err == nil {
		t.Error("two have the lock")
	}
	if err := holder.unlock(held); err != nil {
		t.Fatal(err)
	}
	if n := line(); n != 0 || waiter.Lost() {
		t.Errorf("%d in line, session lost: %v", n, waiter.Lost())
	}
}
