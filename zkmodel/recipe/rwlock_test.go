package recipe_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// rwLine waits until n readers and writers stand in line at /rw.
func rwLine(t *testing.T, s *recipe.Session, n int) {
	t.Helper()
	zktest.Eventually(t, func() bool {
		names, err := s.Children(t.Context(), "/rw")
		return err == nil && len(names) == n
	}, "%d readers and writers", n)
}

// Readers share the lock; a writer has it alone, in its turn, and a reader that came after a
// waiting writer does not overtake it. It would catch readers that shut each other out, a
// writer that does not wait for all of them, and one that starves.
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	a, b := session(t, dial(t, root)), session(t, dial(t, root))
	read := func(s *recipe.Session, who string) *recipe.Lock {
		return recipe.NewReadLock(s, "/rw", who, recipe.EnsureParents())
	}
	one, err := read(a, "one").Try(ctx)
	must(t, err)
	two, err := read(b, "two").Acquire(ctx)
	must(t, err)
	_, err = recipe.NewWriteLock(b, "/rw", "w").Try(ctx)
	want(t, err, recipe.ErrLocked)
	brief, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = recipe.NewWriteLock(b, "/rw", "w").Acquire(brief)
	want(t, err, recipe.ErrLocked)
	want(t, err, context.DeadlineExceeded)
	var held *recipe.HeldUpError
	if !errors.As(err, &held) || len(held.By) != 2 || held.By[0].Identifier != "one" || !strings.Contains(err.Error(), "held by one, two") {
		t.Errorf("held up: %v", err)
	}
	rwLine(t, a, 2)

	rival, written, third := make(chan error, 1), make(chan *recipe.Held, 1), make(chan *recipe.Held, 1)
	acquire := func(l *recipe.Lock, got chan *recipe.Held) {
		h, err := l.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}
	go func() { rival <- one.Rival(ctx) }()
	go acquire(recipe.NewWriteLock(a, "/rw", "writer"), written)
	must(t, <-rival) // the writer; reader two was there before and was none
	rwLine(t, a, 3)
	_, err = read(b, "three").Try(ctx)
	want(t, err, recipe.ErrLocked)
	go acquire(read(b, "three"), third)
	rwLine(t, a, 4)
	must(t, one.Release(ctx))
	select {
	case <-written:
		t.Fatal("the writer has the lock beside a reader")
	case <-third:
		t.Fatal("a reader overtakes a writer")
	case <-time.After(50 * time.Millisecond):
	}
	must(t, two.Release(ctx))
	w := <-written
	if _, err := w.Set(ctx, "/rw", []byte("behind the fence"), recipe.AnyVersion); err != nil {
		t.Error(err)
	}
	select {
	case <-third:
		t.Fatal("a reader has the lock beside a writer")
	default:
	}
	must(t, w.Release(ctx))
	must(t, (<-third).Release(ctx))
	rwLine(t, a, 0)
}

// kazoo's ReadLock and WriteLock and ours keep each other out, and let readers in together.
func TestKazooReadersAndWriters(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	k := kazoo(t, root, `
read, write = zk.ReadLock("/rw", "kazoo-reader"), zk.WriteLock("/rw", "kazoo-writer")
say(read.acquire(blocking=False))
hear()
say(zk.WriteLock("/rw", "kazoo-writer").acquire(blocking=False))
hear()
read.release()
say("released")
hear()
say(write.acquire(timeout=20))
hear()
write.release()
say("released")
hear()
say(read.acquire(timeout=20), read.contenders())
read.release()
`)
	k.Expect("True")
	ours, err := recipe.NewReadLock(s, "/rw", "ours").Try(ctx)
	must(t, err) // beside kazoo's
	_, err = recipe.NewWriteLock(s, "/rw", "ours").Try(ctx)
	want(t, err, recipe.ErrLocked)
	k.Say("try to write beside our reader")
	k.Expect("False") // and its contender stays, as kazoo's tries leave it
	names, err := s.Children(ctx, "/rw")
	must(t, err)
	for _, name := range names {
		if recipe.IsContender(name) {
			must(t, s.Delete(ctx, "/rw/"+name, recipe.AnyVersion))
		}
	}
	k.Say("release")
	k.Expect("released")
	rival := make(chan error, 1)
	go func() { rival <- ours.Rival(ctx) }()
	k.Say("write")
	must(t, <-rival) // kazoo's writer waits for our reader
	rwLine(t, s, 2)
	must(t, ours.Release(ctx))
	k.Expect("True")
	_, err = recipe.NewReadLock(s, "/rw", "ours").Try(ctx)
	want(t, err, recipe.ErrLocked)
	k.Say("release")
	k.Expect("released")
	w, err := recipe.NewWriteLock(s, "/rw", "ours").Acquire(patiently(t))
	must(t, err)
	k.Say("read")
	rwLine(t, s, 2)
	must(t, w.Release(ctx))
	k.Expect("True ['kazoo-reader']")
}

// Faults: a reader whose session is lost holds up nobody and can write nothing; broken
// connections leave one contender a side; who gives up leaves none. It would catch an
// orphan that stops all writers for ever.
func TestReadersAndWritersOverFaults(t *testing.T) {
	t.Parallel()
	for cut := range lossy {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			root, ctx := zktest.Root(t), patiently(t)
			client, p := proxied(t, root, timeout(20*time.Second))
			s, other := session(t, client), session(t, dial(t, root))
			must(t, other.EnsurePath(ctx, "/rw"))
			for _, l := range []*recipe.Lock{recipe.NewReadLock(s, "/rw", ""), recipe.NewWriteLock(s, "/rw", "")} {
				var held *recipe.Held
				breaking(t, p, cut, func() bool {
					names, err := other.Children(ctx, "/rw")
					return err == nil && len(names) == 1
				}, func() (err error) {
					held, err = l.Acquire(ctx)
					return err
				})
				must(t, held.Release(ctx))
				rwLine(t, other, 0)
			}
		})
	}
	root, ctx := zktest.Root(t), patiently(t)
	client, p := proxied(t, root)
	s, other := session(t, client), session(t, dial(t, root))
	must(t, other.EnsurePath(ctx, "/rw"))
	held, err := recipe.NewReadLock(s, "/rw", "lost").Acquire(ctx)
	must(t, err)
	p.Cut()
	lost(t, held.Context(), recipe.ErrSessionLost)
	w, err := recipe.NewWriteLock(other, "/rw", "writer").Acquire(ctx)
	must(t, err)
	p.Heal()
	if _, err := held.Set(ctx, "/rw", []byte("late"), recipe.AnyVersion); err == nil {
		t.Error("a reader writes that has lost the lock")
	}
	must(t, w.Release(ctx))
}

// Many readers and writers at once: never a writer beside another, and all have their turn.
func TestReadersAndWritersMixed(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	var readers, writers atomic.Int32
	done := make(chan error, 8)
	for i := range cap(done) {
		s := session(t, dial(t, root))
		go func() {
			done <- func() error {
				for range 10 {
					l, count := recipe.NewReadLock(s, "/rw", "", recipe.EnsureParents()), &readers
					if i%4 == 0 {
						l, count = recipe.NewWriteLock(s, "/rw", "", recipe.EnsureParents()), &writers
					}
					held, err := l.Acquire(ctx)
					if err != nil {
						return err
					}
					count.Add(1)
					if w := writers.Load(); w > 1 || w == 1 && readers.Load() > 0 {
						return errors.New("a writer is not alone")
					}
					count.Add(-1)
					if err := held.Release(ctx); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range cap(done) {
		must(t, <-done)
	}
}
