package recipe_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// TestServerRestart kills the only server and starts it again: session, lock and
// watches live on.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	server, ctx := zktest.Start(t), t.Context()
	c := dial(t, "/root", through(server.Addr()), timeout(30*time.Second))
	s := session(t, c)
	held, err := recipe.NewLock(s, "/lock", "").Try(ctx)
	must(t, err)
	tree := follow(t, c, "/", recipe.TreeOptions{})
	barrier(t, tree)
	server.Kill()
	server.Restart(t)
	_, err = held.Set(ctx, "/lock", []byte("x"), 0)
	must(t, err)
	barrier(t, tree)
	if e, ok := tree.Get("/lock"); !ok || string(e.Data) != "x" {
		t.Errorf("tree has %q, %v", e.Data, ok)
	}
	if s.Context().Err() != nil || held.Context().Err() != nil {
		t.Error("the restart ended the session")
	}
}

// TestServerGone writes while there is no server: the write waits for one.
func TestServerGone(t *testing.T) {
	t.Parallel()
	server, ctx := zktest.Start(t), t.Context()
	s := session(t, dial(t, "/root", through(server.Addr()), timeout(30*time.Second)))
	must(t, s.EnsurePath(ctx, "/a"))
	server.Kill()
	brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, _, err := s.Get(brief, "/a")
	want(t, err, context.DeadlineExceeded)
	got := make(chan error, 1)
	go func() {
		_, _, err := s.Get(ctx, "/a")
		got <- err
	}()
	server.Restart(t)
	must(t, <-got)
}

// TestEnsembleTree follows a tree over the death of each server, the leader first.
func TestEnsembleTree(t *testing.T) {
	t.Parallel()
	e, ctx := zktest.StartEnsemble(t, 3), t.Context()
	writer := session(t, dial(t, "/root", through(e.Addrs()...), timeout(30*time.Second)))
	must(t, writer.EnsurePath(ctx, "/t"))
	c := dial(t, "/root", through(e.Addrs()...), timeout(30*time.Second))
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	barrier(t, tree)
	s := session(t, c)
	kill := e.Leader(t)
	for range e.Servers {
		e.Kill(kill)
		mustStorm(t, writer, kill)
		barrier(t, tree)
		same(t, ctx, tree, writer, "/t")
		e.Restart(t, kill)
		kill = (kill + 1) % len(e.Servers)
	}
	if session(t, c) != s {
		t.Error("the death of a server ended the session")
	}
}

// mustStorm changes /t while servers die, which may fail single writes.
func mustStorm(t *testing.T, s *recipe.Session, seed int) {
	t.Helper()
	for range 5 {
		if err := storm(t.Context(), s, seed, 20); err != nil {
			want(t, err, recipe.ErrConnectionLost)
		}
	}
}

// TestSetServers moves a session from one server to another, and back when its
// server is taken off the list.
func TestSetServers(t *testing.T) {
	t.Parallel()
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	one, two := zktest.StartProxy(t, addr), zktest.StartProxy(t, addr)
	c, ctx := dial(t, root, through(one.Addr())), t.Context()
	s := session(t, c)
	must(t, s.EnsurePath(ctx, "/a"))
	must(t, c.SetServers([]string{two.Addr()}))
	_, _, err := s.Get(ctx, "/a")
	must(t, err)
	one.Cut() // nobody is there any more
	for range 3 {
		_, err = s.Set(ctx, "/a", nil, recipe.AnyVersion)
		must(t, err)
	}
	if session(t, c) != s {
		t.Error("the move ended the session")
	}
	want(t, c.SetServers(nil), recipe.ErrBadConfig)
	want(t, c.SetServers([]string{"nonsense"}), recipe.ErrBadConfig)
}

// TestAtRest counts what a Client with a Tree, a lock and a registration sends
// when nothing happens: its pings, one every third of the time-out.
func TestAtRest(t *testing.T) {
	t.Parallel()
	server, ctx := zktest.Start(t), t.Context()
	c := dial(t, "/root", through(server.Addr()), timeout(3*time.Second))
	s := session(t, c)
	tree := follow(t, c, "/", recipe.TreeOptions{})
	follow(t, c, "/components", recipe.TreeOptions{}) // a daemon follows several
	follow(t, c, "/not-there", recipe.TreeOptions{})
	register(t, c, "/components", "host", []byte("{}"))
	_, err := recipe.NewLock(s, "/lock", "").Try(ctx)
	must(t, err)
	zktest.Eventually(t, func() bool { return len(tree.Children("/components")) == 1 }, "the registration is seen")
	barrier(t, tree)
	before := server.Requests(t)
	const rest = 12 * time.Second // longer than what is done now and then
	wait(ctx, rest)
	pings := int(rest/time.Second) + 1
	if sent := server.Requests(t) - before; sent > pings+1 { // and the question itself
		t.Errorf("%d requests in %s at rest", sent, rest)
	}
}

// TestQuorumLost kills all servers of an ensemble but one, which can vouch for
// nothing. The lock ends in time, nothing is written, no session begins; all is
// well again once the others are back.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	e, ctx := zktest.StartEnsemble(t, 3), patiently(t)
	c := dial(t, "/root", through(e.Addrs()...), timeout(short))
	s := session(t, c)
	must(t, s.EnsurePath(ctx, "/r"))
	held, err := recipe.NewLock(s, "/r/lock", "").Try(ctx)
	must(t, err)
	leader := e.Leader(t)
	down := []int{leader, (leader + 2) % len(e.Servers)}
	for _, i := range down {
		e.Kill(i)
	}
	start := time.Now()
	lost(t, held.Context(), recipe.ErrSessionLost)
	if took := time.Since(start); took > s.Timeout()+500*time.Millisecond {
		t.Errorf("the lock ended after %s without a quorum, the time-out is %s", took, s.Timeout())
	}
	_, err = held.Set(ctx, "/r", []byte("late"), 0)
	want(t, err, recipe.ErrSessionLost)
	brief, cancel := context.WithTimeout(ctx, short)
	defer cancel()
	_, err = c.Session(brief)
	want(t, err, context.DeadlineExceeded)
	e.Restart(t, down...)
	_, stat, err := session(t, c).Get(patiently(t), "/r")
	must(t, err)
	if stat.Version != 0 {
		t.Errorf("/r was written %d times", stat.Version)
	}
}
