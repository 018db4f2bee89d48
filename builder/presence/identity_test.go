package presence

import (
	"bytes"
	"context"
	"errors"
	"strings"
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

// The session that a builder had before a ZooKeeper restart still holds its id. Log and reason name it as the builder's own; the
// session of a builder on another host, or with another folder, is another builder's.
func TestOldSessionIsNotAnotherBuilder(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr()
	us := Owner{ID: "id", Host: "host", ImagesDir: "/images"}
	for name, c := range map[string]struct {
		before Owner
		want   error
		log    string
	}{
		"own session":    {us, ErrOldSession, "Waiting for the end of an earlier session of this builder"},
		"another host":   {Owner{ID: "id", Host: "other", ImagesDir: "/images"}, ErrSameID, "Another builder has our builder id"},
		"another folder": {Owner{ID: "id", Host: "host", ImagesDir: "/copy"}, ErrSameID, "Another builder has our builder id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := zktest.Root(t)
			dial := func() (*recipe.Session, func()) {
				client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(client.Close)
				s, err := client.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return s, client.Close
			}
			old, leave := dial()
			if _, err := Identify(t.Context(), old, c.before, hclog.NewNullLogger(), func(error) {}); err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			var reason error
			session, _ := dial()
			held, err := Identify(t.Context(), session, us, hclog.New(&hclog.LoggerOptions{Output: &text}), func(waits error) {
				if waits != nil {
					reason = waits
					leave()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !errors.Is(reason, c.want) || !strings.Contains(text.String(), c.log) {
				t.Errorf("reason %v, log %s", reason, &text)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
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
