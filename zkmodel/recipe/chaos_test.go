package recipe_test

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// arena is where children compete for one lock, each behind its own networks.
type arena struct {
	t        *testing.T
	session  *recipe.Session
	children []*child
	networks [][]*zktest.Proxy // of each child, to each server
	paused   bool              // a child was stopped for a while
}

// chaos runs an arena while trouble happens in it, and checks what its children have seen.
func chaos(t *testing.T, addrs []string, trouble func(a *arena)) {
	t.Helper()
	const clients = 4
	root := zktest.Root(t)
	a := &arena{t: t, session: session(t, dial(t, root, through(addrs...)))}
	must(t, a.session.EnsurePath(t.Context(), "/register"))
	for i := range clients {
		var servers []string
		a.networks = append(a.networks, nil)
		for _, addr := range addrs {
			p := zktest.StartProxy(t, addr)
			a.networks[i] = append(a.networks[i], p)
			servers = append(servers, p.Addr())
		}
		a.children = append(a.children, startChild(t, i, servers, root))
	}
	inLine(t, a.session, "/lock", clients)
	trouble(a)
	var events []event
	for _, ch := range a.children {
		events = append(events, ch.end(false)...)
	}
	check(t, events, a.paused)
}

// holder returns the index of the child that holds the lock, or of any.
func (a *arena) holder() int {
	if line, err := recipe.Contenders(a.t.Context(), a.session, "/lock"); err == nil && len(line) > 0 {
		if i, err := strconv.Atoi(line[0].Identifier); err == nil {
			return i
		}
	}
	return rand.IntN(len(a.children))
}

// rest lets the children compete for d.
func (a *arena) rest(d time.Duration) { wait(a.t.Context(), d) }

// outlive waits for longer than a session lasts without word.
func (a *arena) outlive() { a.rest(short + 500*time.Millisecond) }

// hit applies bad to all networks of child i.
func (a *arena) hit(i int, bad func(*zktest.Proxy)) {
	for _, p := range a.networks[i] {
		bad(p)
	}
}

// TestPausedClients stops the holder's process for longer than its session lasts.
func TestPausedClients(t *testing.T) {
	t.Parallel()
	chaos(t, []string{zktest.Shared(t).Addr()}, func(a *arena) {
		a.paused = true
		for range 4 {
			i := a.holder()
			a.children[i].signal(syscall.SIGSTOP)
			a.outlive()
			a.children[i].signal(syscall.SIGCONT)
			a.rest(200 * time.Millisecond)
		}
	})
}

// TestKilledClients kills the holder's process.
func TestKilledClients(t *testing.T) {
	t.Parallel()
	chaos(t, []string{zktest.Shared(t).Addr()}, func(a *arena) {
		for range 2 {
			i := a.holder()
			a.children[i].signal(syscall.SIGKILL)
			<-a.children[i].done
			a.outlive()
		}
	})
}

// TestCutClients cuts the holder off, in every way, for shorter and for longer
// than its session lasts.
func TestCutClients(t *testing.T) {
	t.Parallel()
	cuts := []func(*zktest.Proxy){(*zktest.Proxy).Cut, (*zktest.Proxy).CutUp, (*zktest.Proxy).CutDown, (*zktest.Proxy).Break}
	chaos(t, []string{zktest.Shared(t).Addr()}, func(a *arena) {
		for _, cut := range cuts {
			i := a.holder()
			a.hit(i, cut)
			a.rest(short / 4)
			a.hit(i, (*zktest.Proxy).Heal)
			i = a.holder()
			a.hit(i, cut)
			a.outlive()
			a.hit(i, (*zktest.Proxy).Heal)
			a.rest(100 * time.Millisecond)
		}
	})
}

// TestServersKilled kills each server of an ensemble and starts it again, the
// leader first, while the clients' connections break, too.
func TestServersKilled(t *testing.T) {
	t.Parallel()
	e := zktest.StartEnsemble(t, 3)
	chaos(t, e.Addrs(), func(a *arena) {
		for round := range 4 {
			i := e.Leader(t)
			if round > 0 {
				i = round - 1
			}
			e.Kill(i)
			a.hit(a.holder(), (*zktest.Proxy).Break)
			a.rest(500 * time.Millisecond)
			e.Restart(t, i)
			a.rest(300 * time.Millisecond)
		}
	})
}
