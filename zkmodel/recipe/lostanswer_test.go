package recipe_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// lossy are the ways in which a connection can break under a request.
var lossy = map[string]func(*zktest.Proxy){
	"request lost": (*zktest.Proxy).CutUp,
	"answer lost":  (*zktest.Proxy).CutDown,
}

// breaking does write while the network swallows the request, or the answer
// once applied is true, and then breaks the connection.
func breaking(t *testing.T, p *zktest.Proxy, cut string, applied func() bool, write func() error) {
	t.Helper()
	lossy[cut](p)
	done := make(chan error, 1)
	go func() { done <- write() }()
	if cut == "answer lost" {
		zktest.Eventually(t, applied, "the write is applied")
	} else {
		wait(t.Context(), 50*time.Millisecond) // for the request to be on its way
	}
	p.Break()
	p.Heal()
	must(t, <-done)
	if !applied() {
		t.Error("the write was not applied")
	}
}

// lossyWorld is where a write is broken.
type lossyWorld struct {
	ctx   context.Context
	held  *recipe.Held // of /r/lock
	other *recipe.Session
}

// has reports whether the node at path has data.
func (w lossyWorld) has(path, data string) bool {
	got, _, err := w.other.Get(w.ctx, path)
	return err == nil && string(got) == data
}

// gone reports whether there is no node at path.
func (w lossyWorld) gone(path string) bool {
	_, exists, err := w.other.Exists(w.ctx, path)
	return err == nil && !exists
}

// lossyWrite is a write, and how another session sees that it was applied.
type lossyWrite struct {
	write   func(w lossyWorld) error
	applied func(w lossyWorld) bool
}

// lossyWrites are the writes of a Held that must be applied exactly once. In
// their world there are /r, its lock and /r/old.
var lossyWrites = map[string]lossyWrite{
	"set": {
		func(w lossyWorld) error {
			stat, err := w.held.Set(w.ctx, "/r", []byte("new"), 0)
			if err == nil && stat.Version != 1 {
				return errors.New("applied twice")
			}
			return err
		},
		func(w lossyWorld) bool { return w.has("/r", "new") },
	},
	"set any version": {
		func(w lossyWorld) error {
			_, err := w.held.Set(w.ctx, "/r", []byte("new"), recipe.AnyVersion)
			return err
		},
		func(w lossyWorld) bool { return w.has("/r", "new") },
	},
	"create": {
		func(w lossyWorld) error {
			_, err := w.held.Create(w.ctx, "/r/new", []byte("new"), recipe.Persistent)
			return err
		},
		func(w lossyWorld) bool { return w.has("/r/new", "new") },
	},
	"create unique": {
		func(w lossyWorld) error {
			_, err := w.held.CreateUnique(w.ctx, "/r/u", []byte("mine"), func(data []byte) bool { return string(data) == "mine" })
			return err
		},
		func(w lossyWorld) bool {
			names, err := w.other.Children(w.ctx, "/r")
			return err == nil && len(names) == 3 // the lock, the old and the new one
		},
	},
	"delete": {
		func(w lossyWorld) error { return w.held.Delete(w.ctx, "/r/old", recipe.AnyVersion) },
		func(w lossyWorld) bool { return w.gone("/r/old") },
	},
	"delete tree": {
		func(w lossyWorld) error { return w.held.DeleteTree(w.ctx, "/r") },
		func(w lossyWorld) bool { return w.gone("/r") },
	},
}

// TestLostAnswers breaks the connection under each write of a Held.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range lossyWrites {
		for cut := range lossy {
			if name == "delete tree" && cut == "answer lost" {
				continue // it begins with reads, so nothing would be applied behind a cut
			}
			t.Run(name+", "+cut, func(t *testing.T) {
				t.Parallel()
				root := zktest.Root(t)
				client, p := proxied(t, root, timeout(20*time.Second))
				w := lossyWorld{ctx: patiently(t), other: session(t, dial(t, root))}
				must(t, w.other.EnsurePath(w.ctx, "/r/old"))
				var err error
				w.held, err = recipe.NewLock(session(t, client), "/r/lock", "").Try(w.ctx)
				must(t, err)
				breaking(t, p, cut, func() bool { return c.applied(w) }, func() error { return c.write(w) })
			})
		}
	}
}

// TestLostContender breaks the connection under the creation of a contender, and
// of a registration: there must be one, not two.
func TestLostContender(t *testing.T) {
	t.Parallel()
	for cut := range lossy {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			root, ctx := zktest.Root(t), patiently(t)
			client, p := proxied(t, root, timeout(20*time.Second))
			s, other := session(t, client), session(t, dial(t, root))
			must(t, other.EnsurePath(ctx, "/lock"))
			count := func() bool {
				names, err := other.Children(ctx, "/lock")
				return err == nil && slices.ContainsFunc(names, recipe.IsContender) && len(names) == 1
			}
			var held *recipe.Held
			breaking(t, p, cut, count, func() (err error) {
				held, err = recipe.NewLock(s, "/lock", "").Acquire(ctx)
				return err
			})
			must(t, held.Release(ctx))
		})
	}
}

// TestAbandonedContender gives up while the answer to the creation of a
// contender is on its way: the contender must not stay.
func TestAbandonedContender(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	client, p := proxied(t, root, timeout(20*time.Second))
	s, other, ctx := session(t, client), session(t, dial(t, root)), t.Context()
	must(t, other.EnsurePath(ctx, "/lock"))
	p.CutDown()
	giveUp, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := recipe.NewLock(s, "/lock", "").Acquire(giveUp)
		done <- err
	}()
	inLine(t, other, "/lock", 1)
	cancel()
	want(t, <-done, context.Canceled)
	p.Heal()
	inLine(t, other, "/lock", 0)
}
