package inflight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// after is a moment of the test's clock.
func after(d time.Duration) <-chan time.Time { return time.After(d) }

// lock is one that can be had at once, and lost.
type lock struct {
	ctx      context.Context
	lose     context.CancelFunc
	rival    chan struct{} // closed when somebody stands in line
	released int
}

func (l *lock) Context() context.Context { return l.ctx }
func (l *lock) Fence() recipe.Op         { return recipe.Op{} }

func (l *lock) Release(context.Context) error {
	l.released++
	l.lose()
	return nil
}

func (l *lock) Rival(ctx context.Context) error {
	select {
	case <-l.rival:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bench makes a quota lock of locks that it counts; the barrier fails while broken.
type bench struct {
	*QuotaLock
	got    []*lock
	broken bool
}

func newBench() *bench {
	b := &bench{}
	acquire := func(context.Context) (Held, error) {
		l := &lock{rival: make(chan struct{})}
		l.ctx, l.lose = context.WithCancel(context.Background())
		b.got = append(b.got, l)
		return l, nil
	}
	barrier := func(context.Context) error {
		if b.broken {
			return errors.New("no connection")
		}
		return nil
	}
	b.QuotaLock = NewQuotaLock(acquire, barrier, NewJobs(time.Now, func() {}))
	return b
}

// The lock is kept until another launcher stands in line, and then for the round in which
// it is used: given back before, two launchers would hand it to and fro and launch
// nothing; kept longer, the other never launches.
func TestQuotaLockIsKeptUntilItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		ctx, stop := context.WithCancel(t.Context())
		b.Want(ctx)
		b.Want(ctx)
		synctest.Wait()
		if len(b.got) != 1 {
			t.Fatalf("stood in line %d times", len(b.got))
		}
		if b.Yield(ctx); !b.Use() {
			t.Error("given back although nobody stands in line")
		}
		if _, ours := b.Fence(); !ours {
			t.Error("nothing can be written under the lock")
		}
		close(b.got[0].rival)
		synctest.Wait()
		b.Yield(ctx)
		synctest.Wait()
		if _, ours := b.Fence(); ours || b.Use() || b.got[0].released != 1 {
			t.Error("kept although somebody stands in line and a round was decided")
		}
		b.Want(ctx)
		synctest.Wait()
		close(b.got[1].rival)
		synctest.Wait()
		if b.Yield(ctx); b.got[1].released != 0 {
			t.Error("given back before a round of decisions had it")
		}
		b.End(ctx)
		if b.got[1].released != 1 || b.Use() {
			t.Error("kept at the end")
		}
		stop()
	})
}

// Who has the lock and cannot see what its last holder wrote does not count as having
// it: it would launch beyond the quota. It is given back, and asked for again.
func TestQuotaLockIsOursOnceAllIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.broken = true
		ctx, stop := context.WithCancel(t.Context())
		b.Want(ctx)
		synctest.Wait()
		if b.Use() || b.got[0].released != 1 {
			t.Error("ours although nobody sees what was written before")
		}
		b.broken = false
		<-after(2 * time.Second)
		b.Want(ctx)
		synctest.Wait()
		if !b.Use() {
			t.Error("not ours although all is seen")
		}
		b.got[1].lose()
		if _, ours := b.Fence(); ours || b.Use() {
			t.Error("ours although it is lost: what is written would be fenced by nothing")
		}
		stop()
		b.End(t.Context())
	})
}
