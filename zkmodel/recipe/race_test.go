package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// TestDeleteRace has several sessions lock, write and delete the same records at
// the same time. A record that was deleted stays deleted, none is ever seen
// without its kid, and whoever wrote under a lock had it.
func TestDeleteRace(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	watcher := session(t, dial(t, root))
	const records = 25
	for i := range records {
		must(t, watcher.EnsurePath(ctx, fmt.Sprintf("/r/%d/kid", i)))
	}
	deleted := make([]sync.Once, records)
	var count sync.Map
	var work sync.WaitGroup
	for range 4 {
		s := session(t, dial(t, root))
		work.Go(func() {
			for i := range records {
				record := fmt.Sprintf("/r/%d", i)
				if err := lockAndDelete(ctx, s, record, func() { deleted[i].Do(func() { count.Store(i, true) }) }); err != nil {
					t.Errorf("%s: %v", record, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range records {
			whole(t, watcher, fmt.Sprintf("/r/%d", i))
		}
	}()
	work.Wait()
	<-done
	names, err := watcher.Children(ctx, "/r")
	if err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	for i := range records {
		if _, ok := count.Load(i); !ok {
			t.Errorf("record %d was deleted by nobody", i)
		}
	}
}

// lockAndDelete tries the lock of record and deletes it under the lock.
func lockAndDelete(ctx context.Context, s *recipe.Session, record string, deleted func()) error {
	for {
		held, err := recipe.NewLock(s, record+"/lock", "").Try(ctx)
		switch {
		case errors.Is(err, recipe.ErrNoNode):
			return nil // somebody was faster
		case errors.Is(err, recipe.ErrLocked), errors.Is(err, recipe.ErrFenceLost):
			continue
		case err != nil:
			return err
		}
		_, err = held.Set(ctx, record, []byte("deleting"), recipe.AnyVersion)
		if err == nil {
			err = held.DeleteTree(ctx, record)
		}
		if err == nil {
			deleted()
		}
		if rerr := held.Release(ctx); rerr != nil {
			return rerr
		}
		if err != nil && !errors.Is(err, recipe.ErrFenceLost) {
			return err
		}
	}
}

// whole watches record until it is gone, and demands that it has its kid for as
// long as it is there: the list of children comes with one read.
func whole(t *testing.T, s *recipe.Session, record string) {
	t.Helper()
	for {
		names, err := s.Children(t.Context(), record)
		if errors.Is(err, recipe.ErrNoNode) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		kid := false
		for _, name := range names {
			kid = kid || name == "kid"
		}
		if !kid {
			t.Errorf("%s is half deleted: %v", record, names)
			return
		}
	}
}

// TestForeignContenders puts strange things into a lock's directory: those that
// are no contenders count for nothing, and those that are must be shown.
func TestForeignContenders(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	must(t, s.EnsurePath(ctx, "/lock/notes"))
	for _, name := range []string{"x__rlock__0000000000", "__lock__", "y__lock__12", "z__lock__00000000000"} {
		must(t, s.EnsurePath(ctx, "/lock/"+name))
	}
	if locked, err := recipe.Locked(ctx, s, "/lock"); err != nil || locked {
		t.Fatalf("locked by strangers: %v, %v", locked, err)
	}
	held, err := recipe.NewLock(s, "/lock", "ours").Try(ctx)
	must(t, err)
	// Persistent contenders are Nodepool's for nodes that back others.
	_, err = s.Create(ctx, "/lock/feed__lock__9999999999", []byte("bad \xff identifier"), recipe.Persistent)
	must(t, err)
	line := inLine(t, s, "/lock", 2)
	if line[0].Identifier != "ours" || line[1].Identifier != "bad \uFFFD identifier" || line[1].Seq != "9999999999" {
		t.Errorf("line %+v", line)
	}
	must(t, held.Release(ctx))
	_, err = recipe.NewLock(s, "/lock", "").Try(ctx)
	want(t, err, recipe.ErrLocked)
}
