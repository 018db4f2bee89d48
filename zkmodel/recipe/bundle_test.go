package recipe_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// pending prepares to take the locks of records.
func pending(s *recipe.Session, records ...string) []*recipe.PendingLock {
	var all []*recipe.PendingLock
	for _, record := range records {
		all = append(all, recipe.NewLock(s, record+"/lock", "bundle").Pending())
	}
	return all
}

func TestTakeAndReleaseAll(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	must(t, s.EnsurePath(ctx, "/a"))
	must(t, s.EnsurePath(ctx, "/b"))
	held, results, err := recipe.TakeAll(ctx, s, pending(s, "/a", "/b"),
		recipe.OpSet("/a", []byte("taken"), 0), recipe.OpCreate("/c", nil, recipe.Sequential))
	must(t, err)
	if results[0].Stat.Version != 1 || results[1].Path != "/c0000000002" {
		t.Errorf("results %+v", results)
	}
	for _, record := range []string{"/a", "/b"} {
		_, err := recipe.NewLock(s, record+"/lock", "").Try(ctx)
		want(t, err, recipe.ErrLocked)
	}
	_, _, err = recipe.TakeAll(ctx, s, pending(s, "/b", "/c0000000002"))
	want(t, err, recipe.ErrNodeExists)
	if locked, err := recipe.Locked(ctx, s, "/c0000000002/lock"); err != nil || locked {
		t.Errorf("half of a bundle was taken: %v, %v", locked, err)
	}
	_, err = held[1].Set(ctx, "/b", []byte("written"), 0)
	must(t, err)

	stale := []recipe.Op{recipe.OpSet("/a", []byte("released"), 0)}
	want(t, recipe.ReleaseAll(ctx, held, stale, nil), recipe.ErrVersion)
	must(t, held[0].Context().Err())
	must(t, recipe.ReleaseAll(ctx, held, []recipe.Op{recipe.OpSet("/a", []byte("released"), 1)}, []recipe.Op{recipe.OpDelete("/a/lock", recipe.AnyVersion)}))
	lost(t, held[0].Context(), recipe.ErrReleased)
	lost(t, held[1].Context(), recipe.ErrReleased)
	if data, _, err := s.Get(ctx, "/a"); err != nil || string(data) != "released" {
		t.Errorf("record is %q, %v", data, err)
	}
	if names, err := s.Children(ctx, "/a"); err != nil || len(names) != 0 {
		t.Errorf("left below the record: %v, %v", names, err)
	}
	want(t, recipe.ReleaseAll(ctx, held, nil, nil), recipe.ErrReleased)
	want(t, recipe.ReleaseAll(ctx, nil, nil, nil), recipe.ErrBadPath)
}

// TestReleaseAllFence releases two locks one of which somebody removed.
func TestReleaseAllFence(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, other, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/a"))
	must(t, s.EnsurePath(ctx, "/b"))
	held, _, err := recipe.TakeAll(ctx, s, pending(s, "/a", "/b"))
	must(t, err)
	must(t, other.Delete(ctx, held[1].Path(), recipe.AnyVersion))
	want(t, recipe.ReleaseAll(ctx, held, []recipe.Op{recipe.OpSet("/a", []byte("x"), 0)}, nil), recipe.ErrFenceLost)
	if _, stat, err := s.Get(ctx, "/a"); err != nil || stat.Version != 0 {
		t.Errorf("written without the fence: version %d, %v", stat.Version, err)
	}
	must(t, held[0].Release(ctx))
}

// TestBundleLostAnswers breaks the connection under both transactions.
func TestBundleLostAnswers(t *testing.T) {
	t.Parallel()
	for cut := range lossy {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			root, ctx := zktest.Root(t), patiently(t)
			client, p := proxied(t, root, timeout(20*time.Second))
			s, other := session(t, client), session(t, dial(t, root))
			must(t, other.EnsurePath(ctx, "/a"))
			held, _, err := recipe.TakeAll(ctx, s, pending(s, "/a"))
			must(t, err)
			free := func() bool {
				locked, err := recipe.Locked(ctx, other, "/a/lock")
				return err == nil && !locked
			}
			breaking(t, p, cut, free, func() error { return recipe.ReleaseAll(ctx, held, nil, nil) })

			must(t, other.EnsurePath(ctx, "/b"))
			made := func() bool { // once the dust has settled nobody holds the lock
				return free() && quiet(ctx, other, "/b/lock")
			}
			if cut == "answer lost" {
				made = func() bool { _, exists, err := other.Exists(ctx, "/b/lock"); return err == nil && exists }
			}
			breaking(t, p, cut, made, func() error {
				_, _, err := recipe.TakeAll(ctx, s, pending(s, "/b"))
				want(t, err, recipe.ErrConnectionLost)
				return nil
			})
			zktest.Eventually(t, func() bool { return quiet(ctx, other, "/b/lock") }, "no contender of a lost bundle is left")
		})
	}
}

// quiet reports whether nobody stands in line for the lock of dir.
func quiet(ctx context.Context, s *recipe.Session, dir string) bool {
	locked, err := recipe.Locked(ctx, s, dir)
	return err == nil && !locked
}

func TestRival(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, other, ctx := session(t, dial(t, root)), session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/lock"))
	held, err := recipe.NewLock(s, "/lock", "").Try(ctx)
	must(t, err)
	rival := make(chan error, 1)
	go func() { rival <- held.Rival(ctx) }()
	giveUp, cancel := context.WithCancel(ctx)
	waiting := make(chan error, 1)
	go func() {
		_, err := recipe.NewLock(other, "/lock", "").Acquire(giveUp)
		waiting <- err
	}()
	must(t, <-rival)
	cancel()
	want(t, <-waiting, context.Canceled)
	inLine(t, s, "/lock", 1)
	go func() { rival <- held.Rival(ctx) }()
	must(t, held.Release(ctx))
	want(t, <-rival, recipe.ErrReleased)
}
