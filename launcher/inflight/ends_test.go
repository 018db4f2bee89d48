package inflight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
)

// binder is a session that can be ended.
type binder struct {
	given   context.Context
	unbound bool
}

func (b *binder) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	b.given = ctx
	return ctx, func() { b.unbound = true }
}

// What is given back at the end has a few seconds, though all else has ended, and leaves nothing behind.
func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		b := &binder{}
		ctx, stop := Cleanup(ended, b)
		if ctx.Err() != nil {
			t.Error("over before it began")
		}
		if stop(); !b.unbound || b.given.Err() == nil {
			t.Error("it goes on behind its end")
		}
		ctx, stop = Cleanup(ended, b)
		defer stop()
		<-after(cleanupTime)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("it has no end")
		}
	})
}

// A key is left alone until its pause is over, the next look is when the first may be tried again, and how often it
// failed is forgotten when it was left in peace for long; not while it runs.
func TestPausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJobs(time.Now, func() {})
		one, two := Node("1"), Node("2")
		for range 3 {
			j.Failed(two, LongPause)
		}
		j.Failed(one, LongPause)
		if first := j.Left(one); !j.Next().Equal(first) || !j.Left(two).After(first) {
			t.Errorf("the next look is at %s, want %s", j.Next(), first)
		}
		for i := range 20 { // whatever their order
			j.Failed(Node(string(rune('a'+i))), LongPause)
			j.Failed(Node(string(rune('a'+i))), LongPause)
		}
		if first := j.Left(one); !j.Next().Equal(first) {
			t.Errorf("of many the next look is at %s, want %s", j.Next(), first)
		}
		<-after(time.Until(j.Left(two)))
		if !j.Left(one).IsZero() || !j.Left(two).IsZero() || !j.Next().IsZero() {
			t.Errorf("after the pauses: %s, %s, next look %s", j.Left(one), j.Left(two), j.Next())
		}
		if j.Failures(two) != 3 {
			t.Error("forgotten at once")
		}
		end := make(chan struct{})
		j.Start(one, func() error { <-end; return errors.New("no") })
		<-after(LongPause + time.Minute)
		j.Next()
		if j.Failures(two) != 0 || j.Failures(one) != 1 {
			t.Errorf("failures %d and, while it runs, %d", j.Failures(two), j.Failures(one))
		}
		done := false
		go func() { j.Wait(); done = true }()
		synctest.Wait()
		if done {
			t.Error("nobody waits for what runs")
		}
		close(end)
		synctest.Wait()
		if !done || j.Failures(one) != 2 {
			t.Errorf("waited: %t, %d failures", done, j.Failures(one))
		}
	})
}

// A lock that cannot be had is asked for again after a moment, at most once at a time; who waits for it is told of each end.
func TestQuotaLockThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, told, seen := 0, 0, 0
		acquire := func(context.Context) (Held, error) { asked++; return nil, errors.New("no connection") }
		jobs := NewJobs(time.Now, func() { told++ })
		q := NewQuotaLock(acquire, func(context.Context) error { seen++; return nil }, jobs)
		for range 3 {
			q.Want(t.Context())
			synctest.Wait()
		}
		if asked != 1 || told != 0 || q.Use() {
			t.Errorf("asked %d times at once, told %d times, ours: %t", asked, told, q.Use())
		}
		<-after(time.Second)
		synctest.Wait()
		q.Want(t.Context())
		synctest.Wait()
		if asked != 2 || told != 1 || seen != 0 || q.Use() {
			t.Errorf("a second later: asked %d times, told %d times, ours: %t", asked, told, q.Use())
		}
		jobs.Wait()
	})
}

// A lock that is given back, as nobody sees what was written before, is not ours, also while its end is not known yet.
func TestQuotaLockWithoutSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ctx: t.Context(), lose: func() {}, rival: make(chan struct{})}
		jobs := NewJobs(time.Now, func() {})
		q := NewQuotaLock(func(context.Context) (Held, error) { return l, nil }, func(context.Context) error { return errors.New("no connection") }, jobs)
		q.Want(t.Context())
		jobs.Wait()
		if q.Use() || l.released != 1 {
			t.Errorf("ours: %t, given back %d times", q.Use(), l.released)
		}
	})
}

// The lock stays ours in rounds that use it while nobody stands in line; who stood in line for an earlier one does not count. It is
// given back once.
func TestQuotaLockIsGivenBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		told := 0
		b.jobs.notify = func() { told++ }
		ctx := t.Context()
		b.Want(ctx)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times that it is ours", told)
		}
		b.Use()
		if b.Yield(ctx); !b.Use() {
			t.Error("given back although nobody stands in line")
		}
		b.Doubt(ctx)
		if b.Use() || b.got[0].released != 1 {
			t.Error("kept although nobody knows what became of a write")
		}
		b.Want(ctx)
		synctest.Wait()
		b.Use()
		close(b.got[0].rival)
		synctest.Wait()
		if b.Yield(ctx); !b.Use() {
			t.Error("given back for one that stood in line for an earlier lock")
		}
		before := told
		close(b.got[1].rival)
		synctest.Wait()
		if told != before+1 {
			t.Error("nobody is told that another stands in line")
		}
		b.got[1].lose = func() {} // the lock knows nothing of its end yet
		b.Yield(ctx)
		b.Yield(ctx)
		b.End(ctx)
		synctest.Wait()
		if b.Use() || b.got[1].released != 1 {
			t.Errorf("given back %d times, ours: %t", b.got[1].released, b.Use())
		}
	})
}

// A request that was taken for nothing is free again, one that was begun when that was undone; what is begun is followed late.
func TestRequestsAreLetGo(t *testing.T) {
	t.Parallel()
	r, v := newRecords()
	r.Take("1")
	if r.Drop("1"); r.Requests()["1"] || !r.Take("1") {
		t.Error("dropped, and not free")
	}
	r.Begin("1")
	if !v.late["request 1"] {
		t.Error("each step is followed")
	}
	if r.Drop("1"); !r.Requests()["1"] {
		t.Error("dropped while it is written")
	}
	r.Undo("1")
	if r.Drop("1"); r.Requests()["1"] || v.late["request 1"] {
		t.Error("undone, and not free")
	}
	if r.End(); len(r.Requests()) != 0 {
		t.Errorf("%v are ours", r.Requests())
	}
}

// What is done is let go once: a request that is taken again stays ours, and can be dropped, as if it were the first time.
func TestWhatIsLetGoIsLetGoOnce(t *testing.T) {
	t.Parallel()
	r, v := newRecords()
	r.Created(&zkmodel.Node{ID: "7"})
	if nodes := r.Nodes(); !v.late["node 7"] || len(nodes) != 1 || !nodes[0].Locked {
		t.Errorf("our node is followed late: %t; it is shown as %+v", v.late["node 7"], nodes)
	}
	r.Take("1")
	r.Begin("1")
	r.Finish("1", "7")
	r.retire(t.Context())
	if r.Mine("7") || v.late["node 7"] || r.Requests()["1"] {
		t.Error("done, and still ours")
	}
	r.Take("1")
	r.Created(&zkmodel.Node{ID: "8"})
	r.FinishNode("8")
	if r.retire(t.Context()); r.Mine("8") {
		t.Error("a node of no request is done, and still ours")
	}
	r.FinishNode("9")
	if r.retire(t.Context()); !r.Requests()["1"] {
		t.Error("let go although it was taken again")
	}
	if r.Drop("1"); r.Requests()["1"] {
		t.Error("dropped, and still ours")
	}
}

// While nobody sees how requests ended they stay ours, which is told, and tried again after a while; at the end of a session nothing
// is told.
func TestEndsThatAreNotSeen(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	v := &tree{late: map[string]bool{}, settle: func() error { return errors.New("no connection") }}
	r := NewRecords(v, hclog.New(&hclog.LoggerOptions{Output: &text}), func() { t.Error("nothing was let go") })
	r.Take("1")
	r.Finish("1")
	ended, end := context.WithCancel(t.Context())
	end()
	if pause := r.retire(ended); pause != retirePause || text.Len() > 0 {
		t.Errorf("at the end: %s, %q", pause, text.String())
	}
	r.Finish("1")
	if pause := r.retire(t.Context()); pause != ShortPause || !strings.Contains(text.String(), "they stay ours for a moment") || !r.Requests()["1"] {
		t.Errorf("%s, %q", pause, text.String())
	}
}
