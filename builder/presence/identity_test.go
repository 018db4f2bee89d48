package presence

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// Who was here before us is waited for while ZooKeeper itself is away again and again: each
// time the session that holds our id has its time anew. Catches: a builder that ends, told
// that another has its id, where its own last session has not been able to expire.
func TestIdentityIsWaitedForWhileServersAreAway(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	us := Owner{ID: "id", Host: "host", ImagesDir: "/images"}
	dial := func(addr string) (*recipe.Session, func()) {
		c, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, c.Close
	}
	session, leave := dial(addr)
	if _, err := Identify(t.Context(), session, us, hclog.NewNullLogger(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	network := zktest.StartProxy(t, addr)
	session, _ = dial(network.Addr())
	patience := session.Timeout()*3/2 + expiryLag
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for began := time.Now(); ctx.Err() == nil; {
			timer := time.NewTimer(patience / 4)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
			if network.Break(); time.Since(began) > patience*5/4 {
				leave()
				return
			}
		}
	}()
	if held, err := Identify(ctx, session, us, hclog.NewNullLogger(), func(error) {}); err != nil {
		t.Errorf("it is not waited for: %v", err)
	} else if err := held.Release(ctx); err != nil {
		t.Error(err)
	}
	// Who stays although all is well is another builder.
	for _, want := range []error{nil, ErrSameID} {
		session, _ = dial(addr)
		if _, err := Identify(ctx, session, us, hclog.NewNullLogger(), func(error) {}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Catches: a builder that ends because the time for who was here before us ran out while a server owed an answer.
func TestIdentityIsWaitedForThroughALateAnswer(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	us := Owner{ID: "id", Host: "host", ImagesDir: "/images"}
	dial := func(addr string, timeout time.Duration) (*recipe.Session, func()) {
		c, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, c.Close
	}
	before, leave := dial(addr, time.Second)
	if _, err := Identify(t.Context(), before, us, hclog.NewNullLogger(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	network := zktest.StartProxy(t, addr)
	session, _ := dial(network.Addr(), time.Minute)
	held, err := Identify(t.Context(), session, us, hclog.NewNullLogger(), func(waits error) {
		if waits == nil {
			return
		}
		network.CutDown()
		time.AfterFunc(2*(before.Timeout()*3/2+expiryLag), func() {
			leave()
			network.Heal()
		})
	})
	if err != nil {
		t.Fatalf("it is not waited for: %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
