package recipe_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// A transaction takes locks and makes changes, all or nothing.
func TestTakeAll(t *testing.T) {
	root := zktest.Root(t)
	one, two, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, one.EnsurePath(ctx, "/r"))
	must(t, one.EnsurePath(ctx, "/s"))
	locks := []*recipe.Lock{recipe.NewLock(one, "/r/lock", "me"), recipe.NewLock(one, "/s/lock", "me")}
	claims := func() []*recipe.Bid { return []*recipe.Bid{locks[0].Bid(), locks[1].Bid()} }

	held, results, err := recipe.TakeAll(ctx, one, claims(),
		recipe.OpSet("/r", []byte("taken"), 0), recipe.OpCreate("/s/child-", []byte("x"), recipe.Sequential))
	must(t, err)
	if len(held) != 2 || results[0].Stat.Version != 1 || results[1].Path != "/s/child-0000000000" {
		t.Fatalf("%d locks, results %+v", len(held), results)
	}
	_, err = recipe.NewLock(two, "/r/lock", "").Try(ctx)
	want(t, err, recipe.ErrLocked)

	// A change that fails takes no lock, and a directory that exists is told.
	_, _, err = recipe.TakeAll(ctx, one, claims())
	want(t, err, recipe.ErrNodeExists)

	// A rival is told of, and gets the lock that is given up in a transaction.
	waiting := make(chan error, 1)
	go func() { waiting <- held[0].Rival(ctx) }()
	next := make(chan *recipe.Held, 1)
	go func() {
		h, err := recipe.NewLock(two, "/r/lock", "rival").Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	must(t, <-waiting)
	err = recipe.ReleaseAll(ctx, held, []recipe.Op{recipe.OpSet("/r", nil, 0)}, nil)
	want(t, err, recipe.ErrVersion)
	if held[0].Context().Err() != nil {
		t.Fatal("a release that failed ended the lock")
	}
	must(t, recipe.ReleaseAll(ctx, held, []recipe.Op{recipe.OpSet("/r", []byte("free"), 1)},
		[]recipe.Op{recipe.OpDelete("/s/lock", recipe.AnyVersion)}))
	if _, exists, err := one.Exists(ctx, "/s/lock"); err != nil || exists {
		t.Errorf("the lock's directory is there: %v (%v)", exists, err)
	}
	must(t, (<-next).Release(ctx))
	lost(t, held[1].Context(), context.Cause(held[0].Context()))
}

// A lock that was taken away keeps the transaction from happening.
func TestReleaseAllOfALostLock(t *testing.T) {
	root := zktest.Root(t)
	one, two, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, one.EnsurePath(ctx, "/r"))
	held, _, err := recipe.TakeAll(ctx, one, []*recipe.Bid{recipe.NewLock(one, "/r/lock", "").Bid()})
	must(t, err)
	must(t, two.Delete(ctx, held[0].Path(), recipe.AnyVersion))
	want(t, recipe.ReleaseAll(ctx, held, []recipe.Op{recipe.OpSet("/r", []byte("x"), recipe.AnyVersion)}, nil), recipe.ErrFenceLost)
	if data, _, err := two.Get(ctx, "/r"); err != nil || string(data) == "x" {
		t.Errorf("changed to %q (%v) without the lock", data, err)
	}
}

// An answer that is lost leaves no lock behind that nobody knows of.
func TestTakeAllWhoseAnswerIsLost(t *testing.T) {
	root := zktest.Root(t)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	one, two, ctx := session(t, dial(t, root, through(proxy.Addr()))), session(t, dial(t, root)), t.Context()
	must(t, one.EnsurePath(ctx, "/r"))
	done := make(chan error, 1)
	proxy.Cut()
	go func() {
		_, _, err := recipe.TakeAll(ctx, one, []*recipe.Bid{recipe.NewLock(one, "/r/lock", "").Bid()})
		done <- err
	}()
	time.AfterFunc(100*time.Millisecond, proxy.Heal)
	if err := <-done; err == nil {
		return // it was sent after the connection was back
	}
	zktest.Eventually(t, func() bool {
		locked, err := recipe.Locked(ctx, two, "/r/lock")
		return err == nil && !locked
	}, "no lock left")
}
