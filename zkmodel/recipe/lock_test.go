package recipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestLock(t *testing.T) {
	root := zktest.Root(t)
	one, two, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, one.EnsurePath(ctx, "/r"))
	held, err := recipe.NewLock(one, "/r/lock", "first").Try(ctx)
	must(t, err)
	if _, err := recipe.NewLock(two, "/r/lock", "").Try(ctx); !errors.Is(err, recipe.ErrLocked) {
		t.Fatalf("second try: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Second) // long enough to stand in line on a busy machine
	defer cancel()
	_, err = recipe.NewLock(two, "/r/lock", "").Acquire(short)
	if !errors.Is(err, recipe.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("acquire with deadline: %v", err)
	}
	line := func() []recipe.Contender {
		t.Helper()
		line, err := recipe.Contenders(ctx, two, "/r/lock")
		must(t, err)
		return line
	}
	zktest.Eventually(t, func() bool { return len(line()) == 1 }, "the contender that gave up is gone")
	if id := line()[0].Identifier; id != "first" {
		t.Errorf("holder %q", id)
	}
	got := make(chan *recipe.Held, 1)
	go func() {
		h, err := recipe.NewLock(two, "/r/lock", "second").Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	zktest.Eventually(t, func() bool { return len(line()) == 2 }, "the second contender waits")
	must(t, held.Release(ctx))
	next := <-got
	if cause := context.Cause(held.Context()); !errors.Is(cause, recipe.ErrReleased) {
		t.Errorf("cause after release: %v", cause)
	}
	if next.Context().Err() != nil {
		t.Errorf("next holder's context ended: %v", context.Cause(next.Context()))
	}
	must(t, next.Release(ctx))
	if locked, err := recipe.Locked(ctx, one, "/r/lock"); err != nil || locked {
		t.Errorf("locked at the end: %v, %v", locked, err)
	}
}

func TestLockDoesNotResurrect(t *testing.T) {
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	if _, err := recipe.NewLock(s, "/record/lock", "").Try(ctx); !errors.Is(err, recipe.ErrNoNode) {
		t.Fatalf("lock of a record that is gone: %v", err)
	}
	if _, exists, _ := s.Exists(ctx, "/record"); exists {
		t.Fatal("the lock made the record")
	}
	held, err := recipe.NewLock(s, "/images/i/builds/lock", "", recipe.EnsureParents()).Try(ctx)
	must(t, err)
	must(t, held.Release(ctx))
}

func TestFencedWrites(t *testing.T) {
	root := zktest.Root(t)
	s, other, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/r"))
	held, err := recipe.NewLock(s, "/r/lock", "").Try(ctx)
	must(t, err)
	stat, err := held.Set(ctx, "/r", []byte("1"), 0)
	must(t, err)
	if _, err = held.Set(ctx, "/r", []byte("2"), 0); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("set of old version: %v", err)
	}
	path, err := held.CreateUnique(ctx, "/r/u", []byte("x"), func([]byte) bool { return false })
	if err != nil || path != "/r/u0000000001" {
		t.Errorf("create: %q, %v", path, err)
	}
	must(t, held.Delete(ctx, path, 0))

	must(t, other.Delete(ctx, held.Path(), recipe.AnyVersion))
	<-held.Context().Done()
	if cause := context.Cause(held.Context()); !errors.Is(cause, recipe.ErrFenceLost) {
		t.Errorf("cause: %v", cause)
	}
	writes := map[string]func() error{
		"set":         func() error { _, err := held.Set(ctx, "/r", nil, stat.Version); return err },
		"create":      func() error { _, err := held.Create(ctx, "/r/x", nil, recipe.Persistent); return err },
		"unique":      func() error { _, err := held.CreateUnique(ctx, "/r/x", nil, nil); return err },
		"delete":      func() error { return held.Delete(ctx, "/r", recipe.AnyVersion) },
		"delete tree": func() error { return held.DeleteTree(ctx, "/r") },
	}
	for name, write := range writes {
		if err := write(); !errors.Is(err, recipe.ErrFenceLost) {
			t.Errorf("%s without fence: %v", name, err)
		}
	}
	if data, _, err := s.Get(ctx, "/r"); err != nil || string(data) != "1" {
		t.Errorf("record after lost fence: %q, %v", data, err)
	}
	must(t, held.Release(ctx))

	again, err := recipe.NewLock(s, "/r/lock", "").Try(ctx)
	must(t, err)
	_, err = again.Multi(ctx) // the fence alone
	must(t, err)
	must(t, again.Release(ctx))
	_, err = again.Set(ctx, "/r", nil, recipe.AnyVersion)
	want(t, err, recipe.ErrReleased)
}

// TestFenceHolds writes right after the contender was removed, when the holder
// has not yet heard of its loss, so that only the fence can stop it.
func TestFenceHolds(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, other, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/r"))
	unaware := 0
	for range 50 {
		held, err := recipe.NewLock(s, "/r/lock", "").Try(ctx)
		must(t, err)
		must(t, other.Delete(ctx, held.Path(), recipe.AnyVersion))
		if held.Context().Err() == nil {
			unaware++
		}
		_, err = held.Set(ctx, "/r", []byte("too late"), recipe.AnyVersion)
		want(t, err, recipe.ErrFenceLost)
		must(t, held.Release(ctx))
	}
	if _, stat, err := s.Get(ctx, "/r"); err != nil || stat.Version != 0 {
		t.Errorf("version %d, %v", stat.Version, err)
	}
	if unaware == 0 {
		t.Error("the fence was never needed")
	}
}

func TestDeleteTreeUnderOwnLock(t *testing.T) {
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	must(t, s.EnsurePath(ctx, "/r/kid/kid"))
	held, err := recipe.NewLock(s, "/r/lock", "").Try(ctx)
	must(t, err)
	for range 1200 {
		_, err := s.Create(ctx, "/r/zz", nil, recipe.Sequential)
		must(t, err)
	}
	must(t, held.DeleteTree(ctx, "/r"))
	if _, exists, err := s.Exists(ctx, "/r"); err != nil || exists {
		t.Fatalf("exists after delete: %v, %v", exists, err)
	}
	<-held.Context().Done()
	must(t, held.Release(ctx))
}
