package recipe_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// short is a session time-out for tests that lose sessions.
const short = 2 * time.Second

// proxied returns a Client behind a proxy to the shared server.
func proxied(t *testing.T, root string, change ...func(*recipe.Config)) (*recipe.Client, *zktest.Proxy) {
	t.Helper()
	p := zktest.StartProxy(t, zktest.Shared(t).Addr())
	change = append([]func(*recipe.Config){through(p.Addr()), timeout(short)}, change...)
	return dial(t, root, change...), p
}

// TestDisconnectEndsNothing breaks connections again and again, faster than the
// session expires.
func TestDisconnectEndsNothing(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	c, p := proxied(t, root, timeout(10*time.Second))
	s, ctx := session(t, c), t.Context()
	held, err := recipe.NewLock(s, "/lock", "").Try(ctx)
	must(t, err)
	for range 5 {
		p.Break()
		if _, _, err := s.Get(ctx, "/lock"); err != nil {
			t.Fatalf("read after disconnect: %v", err)
		}
	}
	if session(t, c) != s || held.Context().Err() != nil {
		t.Fatal("a disconnect ended the session")
	}
	_, err = held.Set(ctx, "/lock", []byte("x"), recipe.AnyVersion)
	must(t, err)
}

// TestCutOff cuts a client off, in both directions and in each, and demands that
// its session has ended here before the server gives its lock to another.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*zktest.Proxy){
		"both": (*zktest.Proxy).Cut, "up": (*zktest.Proxy).CutUp, "down": (*zktest.Proxy).CutDown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := zktest.Root(t)
			c, p := proxied(t, root)
			s, other, ctx := session(t, c), session(t, dial(t, root)), t.Context()
			held, err := recipe.NewLock(s, "/lock", "").Try(ctx)
			must(t, err)
			talk(t, other)
			tree := follow(t, c, "/", recipe.TreeOptions{}) // watches bring word from the server, which proves nothing
			barrier(t, tree)
			cut(p)
			next, err := recipe.NewLock(other, "/lock", "").Acquire(patiently(t))
			must(t, err)
			if held.Context().Err() == nil {
				t.Fatal("two hold the lock")
			}
			lost(t, held.Context(), recipe.ErrSessionLost)
			lost(t, s.Context(), recipe.ErrSessionLost)
			_, err = held.Set(ctx, "/lock", nil, recipe.AnyVersion)
			want(t, err, recipe.ErrSessionLost)
			must(t, next.Release(ctx))

			p.Heal()
			if again := session(t, c); again.ID() == s.ID() {
				t.Fatal("the session came back")
			}
		})
	}
}

// talk writes to one node after the other until the test ends, so that the
// server has something to say to those who watch them.
func talk(t *testing.T, s *recipe.Session) {
	t.Helper()
	const nodes = 100
	for i := range nodes {
		must(t, s.EnsurePath(t.Context(), fmt.Sprintf("/talk/%d", i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = s.Set(ctx, fmt.Sprintf("/talk/%d", i%nodes), nil, recipe.AnyVersion)
			wait(ctx, 50*time.Millisecond)
		}
	}()
}

// TestSlowNetwork delays every packet by more than a round trip ever takes.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, zktest.Root(t))
	s, ctx := session(t, c), t.Context()
	p.Slow(100 * time.Millisecond)
	held, err := recipe.NewLock(s, "/lock", "").Try(ctx)
	must(t, err)
	must(t, held.Release(ctx))
	if s.Context().Err() != nil {
		t.Fatalf("a slow network ended the session: %v", context.Cause(s.Context()))
	}
}

// TestTreeOverFaults follows a tree that changes while connections break and
// sessions expire, and compares what it saw in the end.
func TestTreeOverFaults(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	c, p := proxied(t, root)
	s, ctx := session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/t"))
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	for round := range 4 {
		before := session(t, c)
		if round%2 == 0 {
			p.Break()
		} else {
			p.Cut()
			lost(t, before.Context(), recipe.ErrSessionLost)
		}
		must(t, storm(ctx, s, round, 30))
		p.Heal()
		barrier(t, tree)
		same(t, ctx, tree, s, "/t")
	}
}

// TestBarrierAfterReconnect changes everything while a client is cut off that
// watches more than one request can restore. Its barrier must wait for the events
// of all of them, although the answer that it asks for comes first.
func TestBarrierAfterReconnect(t *testing.T) {
	t.Parallel()
	const nodes, batch = 1500, 300
	root := zktest.Root(t)
	c, p := proxied(t, root, timeout(20*time.Second))
	s, ctx := session(t, dial(t, root)), patiently(t)
	must(t, s.EnsurePath(ctx, "/t"))
	all := func(op func(path string) recipe.Op) {
		t.Helper()
		for from := 0; from < nodes; from += batch {
			var ops []recipe.Op
			for i := range batch {
				ops = append(ops, op(fmt.Sprintf("/t/%0200d", from+i)))
			}
			_, err := s.Multi(ctx, ops...)
			must(t, err)
		}
	}
	all(func(path string) recipe.Op { return recipe.OpCreate(path, []byte("old"), recipe.Persistent) })
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	barrier(t, tree)
	for _, data := range []string{"new", "newer"} {
		p.Cut()
		p.Break()
		all(func(path string) recipe.Op { return recipe.OpSet(path, []byte(data), recipe.AnyVersion) })
		p.Heal()
		barrier(t, tree)
		for path, got := range content(tree, "/t") {
			if path != "/t" && got != data {
				t.Fatalf("%s is %q behind a barrier, want %q", path, got, data)
			}
		}
	}
}

// TestTreeInventsNothing loses the session while nothing changes.
func TestTreeInventsNothing(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	c, p := proxied(t, root)
	s, ctx := session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/t/a/b"))
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	barrier(t, tree)
	version := tree.Version()
	old := session(t, c)
	p.Cut()
	lost(t, old.Context(), recipe.ErrSessionLost)
	p.Heal()
	barrier(t, tree)
	if tree.Version() != version {
		t.Fatalf("version %d became %d without a change", version, tree.Version())
	}
}
