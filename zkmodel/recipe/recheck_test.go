package recipe_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// guardian changes who may do what, and may do everything itself.
type guardian struct {
	t    *testing.T
	conn *zk.Conn
	root string
}

func newGuardian(t *testing.T, root string) guardian {
	t.Helper()
	conn, _, err := zk.Connect([]string{zktest.Shared(t).Addr()}, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	must(t, conn.AddAuth("digest", []byte("admin:secret")))
	return guardian{t, conn, root}
}

// set gives rights to paths, the last ones first, so that it does not lock itself out.
func (g guardian) set(acl []zk.ACL, paths ...string) {
	g.t.Helper()
	for _, p := range paths {
		_, err := g.conn.SetACL(path.Join(g.root, p), acl, -1)
		must(g.t, err)
	}
}

// A Tree shows what changed while its rights were closed: servers swallow the watches
// of those who may not read.
func TestTreeWhoseRightsWereClosed(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s, c := session(t, dial(t, root)), dial(t, root)
	must(t, s.EnsurePath(ctx, "/t/old/lock"))
	must(t, s.EnsurePath(ctx, "/t/bare"))
	must(t, s.EnsurePath(ctx, "/t/gone"))
	tree := follow(t, c, "/t", recipe.TreeOptions{
		Recheck: 50 * time.Millisecond,
		Filter: func(p string) recipe.Interest {
			switch {
			case p == "/t" || path.Base(p) == "lock":
				return recipe.Children
			case path.Dir(p) == "/t":
				return recipe.Data
			}
			return recipe.None
		},
		Known: func(p string) []string {
			if path.Dir(p) == "/t" {
				return []string{"lock"}
			}
			return nil
		},
	})
	must(t, tree.WaitSynced(ctx))
	g := newGuardian(t, root)
	all := []string{"/t", "/t/old", "/t/old/lock", "/t/bare", "/t/gone"}
	closed, open := zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermAll)
	for range 3 {
		g.set(closed, all...)
		_, err := g.conn.Set(root+"/t/old", []byte("changed"), -1)
		must(t, err)
		for _, p := range []string{"/t/new", "/t/old/lock/contender", "/t/bare/lock", "/t/bare/lock/contender"} {
			_, err := g.conn.Create(root+p, []byte("x"), 0, open)
			must(t, err)
		}
		must(t, g.conn.Delete(root+"/t/gone", -1))
		g.set(open, all[:4]...)
		shows := func(data, lock, bare string, fresh, gone bool) func() bool {
			return func() bool {
				e, _ := tree.Get("/t/old")
				_, held := tree.Get("/t/old/lock/contender")
				_, bareHeld := tree.Get("/t/bare/lock/contender")
				_, isNew := tree.Get("/t/new")
				_, there := tree.Get("/t/gone")
				return string(e.Data) == data && held == (lock != "") && bareHeld == (bare != "") && isNew == fresh && there != gone
			}
		}
		zktest.Eventually(t, shows("changed", "held", "held", true, true), "what changed is seen")

		// And everything back, while it may be read.
		for _, p := range []string{"/t/new", "/t/old/lock/contender", "/t/bare/lock/contender", "/t/bare/lock"} {
			must(t, s.Delete(ctx, p, recipe.AnyVersion))
		}
		_, err = s.Set(ctx, "/t/old", []byte("back"), recipe.AnyVersion)
		must(t, err)
		must(t, s.EnsurePath(ctx, "/t/gone"))
		must(t, tree.Barrier(ctx))
		zktest.Eventually(t, shows("back", "", "", false, false), "what came back is seen")
	}
}

// A lock that could not be given up is, as soon as it may be.
func TestLockThatMayNotBeReleased(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	must(t, s.EnsurePath(ctx, "/l"))
	held, err := recipe.NewLock(s, "/l", "").Try(ctx)
	must(t, err)
	g := newGuardian(t, root)
	g.set(zk.DigestACL(zk.PermAll, "admin", "secret"), "/l")
	if err := held.Release(ctx); err == nil {
		t.Error("released without the right to")
	}
	g.set(zk.WorldACL(zk.PermAll), "/l")
	zktest.Eventually(t, func() bool {
		other, err := recipe.NewLock(s, "/l", "").Try(ctx)
		if err == nil {
			err = other.Release(context.WithoutCancel(ctx))
		}
		return err == nil
	}, "the lock is free")
}
