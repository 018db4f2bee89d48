package recipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// queueFolders lists what a queue at /q holds of requests, by folder.
func queueFolders(t *testing.T, s *recipe.Session) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"jobs", "locks", "params", "requests", "result-data", "results", "waiters"} {
		names, err := s.Children(t.Context(), "/q/"+folder)
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		must(t, err)
		for _, name := range names {
			all = append(all, folder+"/"+name)
		}
	}
	slices.Sort(all)
	return all
}

// Mistakes: a request that two work at, a result that a waiter reads before all of it is
// there or never, a result that is removed under who waits for it, something that stays
// when a request goes.
func TestQueueBringsResultsToWaiters(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	asker, worker, other := session(t, dial(t, root)), session(t, dial(t, root)), session(t, dial(t, root))
	ask, work, help := recipe.NewQueue(asker, "/q", "jobs"), recipe.NewQueue(worker, "/q", "jobs"), recipe.NewQueue(other, "/q", "jobs")
	if names := queueFolders(t, asker); len(names) > 0 {
		t.Errorf("a queue that nobody uses holds %q", names)
	}
	for _, id := range []string{"a", "b", "c"} {
		made, err := ask.Submit(ctx, id, []byte("do "+id), []byte("much of "+id), recipe.OpCreate("/q/jobs/"+id, nil, recipe.Persistent))
		if err != nil || !made {
			t.Fatalf("submit %s: %v, %v", id, made, err)
		}
	}
	if made, err := help.Submit(ctx, "b", []byte("another"), nil); made || err != nil {
		t.Errorf("submit an id that there is: %v, %v", made, err)
	}
	held, err := work.TryTake(ctx, "b", "worker")
	must(t, err)
	_, err = help.TryTake(ctx, "b", "other")
	want(t, err, recipe.ErrLocked)
	_, err = help.TryTake(ctx, "x", "other")
	want(t, err, recipe.ErrNoNode)
	params, err := work.Params(ctx, "b")
	if err != nil || string(params) != "much of b" {
		t.Errorf("params %q: %v", params, err)
	}
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, 2)
	for _, q := range []*recipe.Queue{ask, help} {
		go func() {
			data, err := q.Wait(ctx, "b", "asker")
			answers <- answer{data, err}
		}()
	}
	waiters := func(n int) {
		t.Helper()
		zktest.Eventually(t, func() bool {
			names, err := other.Children(ctx, "/q/waiters/b")
			return err == nil && len(names) == n || n == 0 && errors.Is(err, recipe.ErrNoNode)
		}, "%d wait", n)
	}
	waiters(2)
	want(t, work.Remove(ctx, held, "b"), recipe.ErrWaited)
	if _, err := ask.Result(ctx, "b"); !errors.Is(err, recipe.ErrNoNode) {
		t.Errorf("a result before there is one: %v", err)
	}
	result := bytes.Repeat([]byte("result "), 300_000) // 2 MB
	must(t, work.Complete(ctx, held, "b", result, recipe.OpSet("/q/jobs/b", []byte("over"), recipe.AnyVersion)))
	for range 2 {
		if got := <-answers; got.err != nil || !bytes.Equal(got.data, result) {
			t.Errorf("a waiter got %d bytes: %v", len(got.data), got.err)
		}
	}
	if data, _, err := other.Get(ctx, "/q/jobs/b"); err != nil || string(data) != "over" {
		t.Errorf("the step of the same transaction wrote %q: %v", data, err)
	}
	reopen := func() {
		steps, err := work.Reopen(ctx, "b")
		must(t, err)
		_, err = held.Multi(ctx, steps...)
		must(t, err)
	}
	earlier := func(want []byte) {
		if data, err := work.Earlier(ctx, "b"); err != nil || !bytes.Equal(data, want) {
			t.Errorf("the result that was taken back is %.20q: %v", data, err)
		}
	}
	reopen()
	earlier(result)
	must(t, work.Complete(ctx, held, "b", []byte("good")))
	earlier(result)
	reopen()
	earlier([]byte("good"))
	must(t, work.Complete(ctx, held, "b", []byte("better")))
	earlier([]byte("good"))
	if data, err := help.Wait(ctx, "b", "late"); err != nil || string(data) != "better" {
		t.Errorf("the second result is %.20q: %v", data, err)
	}
	waiters(0)
	must(t, work.Remove(ctx, held, "b"))
	must(t, held.Release(ctx))
	must(t, help.Sweep(ctx)) // the lock, which was held at the time
	wantNames := []string{"jobs/a", "jobs/c", "params/a", "params/c", "requests/a", "requests/c"}
	if names := queueFolders(t, asker); !slices.Equal(names, wantNames) {
		t.Errorf("the queue holds %q", names)
	}
}

// Mistakes: a waiter who waits for ever for a request that is gone, and one who leaves
// something behind.
func TestQueueTellsWaitersThatARequestIsGone(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	s := session(t, dial(t, root))
	q := recipe.NewQueue(s, "/q")
	_, err := q.Submit(ctx, "a", nil, nil)
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := q.Wait(ctx, "a", "")
		done <- err
	}()
	zktest.Eventually(t, func() bool { waited, err := q.Waited(ctx, "a"); return err == nil && waited }, "it is waited for")
	must(t, s.DeleteTree(ctx, "/q/requests/a"))
	want(t, <-done, recipe.ErrNoNode)
	zktest.Eventually(t, func() bool {
		return q.Sweep(ctx) == nil && len(queueFolders(t, s)) == 0 //nolint:contextcheck // the test's
	}, "nothing is left")
}

// Mistakes: a request that is lost with who works at it; a result that a worker writes
// which was paused and has lost the lock.
func TestQueueHandsOver(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	c, p := proxied(t, root)
	first, second := recipe.NewQueue(session(t, c), "/q"), recipe.NewQueue(session(t, dial(t, root)), "/q")
	_, err := first.Submit(ctx, "a", []byte("x"), nil)
	must(t, err)
	held, err := first.Take(ctx, "a", "first")
	must(t, err)
	p.Cut()
	next, err := second.Take(ctx, "a", "second")
	must(t, err)
	if err := first.Complete(ctx, held, "a", []byte("late")); err == nil {
		t.Error("who has lost the lock writes a result")
	}
	p.Heal()
	must(t, second.Complete(ctx, next, "a", []byte("right")))
	if got, err := second.Result(ctx, "a"); err != nil || string(got) != "right" {
		t.Errorf("result %q: %v", got, err)
	}
}

// Mistake: a request that is made twice, or is said to be another's, because the answer to
// its creation was lost.
func TestQueueSubmitsOnceOverALostAnswer(t *testing.T) {
	t.Parallel()
	for cut := range lossy {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			root, ctx := zktest.Root(t), patiently(t)
			c, p := proxied(t, root, timeout(10*time.Second))
			other := session(t, dial(t, root))
			q := recipe.NewQueue(session(t, c), "/q")
			_, err := q.Submit(ctx, "a", nil, nil)
			must(t, err)
			breaking(t, p, cut, func() bool {
				data, _, err := other.Get(ctx, "/q/requests/b")
				return err == nil && string(data) == "token"
			}, func() error {
				made, err := q.Submit(ctx, "b", []byte("token"), nil)
				if err == nil && !made {
					err = errors.New("taken for another's")
				}
				return err
			})
		})
	}
}

// Mistakes: work that begins although who asked for it was told that it will not, or the
// other way round; one of the two that does not know what holds, as an answer was lost.
func TestQueueBeginsOrIsWithdrawn(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	ask, work := recipe.NewQueue(session(t, dial(t, root)), "/q"), recipe.NewQueue(session(t, dial(t, root)), "/q")
	asked := func(id string) *recipe.Held {
		_, err := ask.Submit(ctx, id, nil, nil, ask.OpsWait(id, "asker")...)
		must(t, err)
		held, err := work.Take(ctx, id, "worker")
		must(t, err)
		return held
	}
	begun := 0
	for i := range 20 {
		id := fmt.Sprint("race", i)
		held := asked(id)
		took := make(chan error, 1)
		go func() { took <- ask.Withdraw(ctx, id) }()
		err := work.Begin(ctx, held, id, 0)
		if err == nil {
			begun++
			want(t, <-took, recipe.ErrBegun)
			must(t, work.Begin(ctx, held, id, 0)) // it goes on in another session
			continue
		}
		want(t, err, recipe.ErrWithdrawn)
		must(t, <-took)
	}
	t.Logf("%d of 20 have begun", begun)
	held := asked("gone")
	must(t, ask.Leave(ctx, "gone"))
	must(t, work.Remove(ctx, held, "gone"))
	want(t, ask.Withdraw(ctx, "gone"), recipe.ErrNoNode)
	other := session(t, dial(t, root))
	for cut := range lossy {
		c, p := proxied(t, root, timeout(10*time.Second))
		asked("lost " + cut)
		late := recipe.NewQueue(session(t, c), "/q")
		breaking(t, p, cut, func() bool {
			data, _, err := other.Get(ctx, "/q/waiters/lost "+cut)
			return err == nil && len(data) > 0
		}, func() error { return late.Withdraw(ctx, "lost "+cut) })
	}
}

// Mistakes: garbage that stays for ever after a crash between two steps of a removal or
// of a result; a sweep that takes what belongs to a request; an id that cannot be used
// again as something of it was left.
func TestQueueSweepsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	s := session(t, dial(t, root))
	q := recipe.NewQueue(s, "/q", "jobs")
	for _, id := range []string{"kept", "gone", "again"} {
		_, err := q.Submit(ctx, id, nil, nil, recipe.OpCreate("/q/jobs/"+id, nil, recipe.Persistent))
		must(t, err)
		for n := range 700 { // more than one transaction's
			_, err := s.Create(ctx, fmt.Sprintf("/q/jobs/%s/%d", id, n), nil, recipe.Persistent)
			must(t, err)
			if id != "gone" {
				break
			}
		}
		held, err := q.TryTake(ctx, id, "")
		must(t, err)
		must(t, q.Complete(ctx, held, id, []byte("result of "+id)))
		must(t, held.Release(ctx))
	}
	must(t, s.Delete(ctx, "/q/requests/gone", recipe.AnyVersion)) // the first step of a removal
	must(t, s.Delete(ctx, "/q/requests/again", recipe.AnyVersion))
	made, err := q.Submit(ctx, "again", []byte("new"), nil, recipe.OpCreate("/q/jobs/again", nil, recipe.Persistent))
	if err != nil || !made {
		t.Errorf("an id of which something was left: %v, %v", made, err)
	}
	if _, err := q.Result(ctx, "again"); !errors.Is(err, recipe.ErrNoNode) {
		t.Errorf("the new request has the old one's result: %v", err)
	}
	must(t, q.Sweep(ctx))
	wantNames := []string{
		"jobs/again", "jobs/kept", "locks/kept", "params/again", "params/kept", "requests/again", "requests/kept",
		"result-data/kept", "results/kept",
	}
	if names := queueFolders(t, s); !slices.Equal(names, wantNames) {
		t.Errorf("after the sweep there are %q", names)
	}
	if got, err := q.Result(ctx, "kept"); err != nil || string(got) != "result of kept" {
		t.Errorf("result %q: %v", got, err)
	}
}

// Mistakes: params that no server takes as they are; those of an older release, which are never
// compressed, taken for compressed ones, or the other way round; damaged ones that are read.
func TestQueueTakesLargeParams(t *testing.T) {
	t.Parallel()
	ctx, s := patiently(t), session(t, dial(t, zktest.Root(t)))
	q := recipe.NewQueue(s, "/q")
	large := bytes.Repeat([]byte("image and providers "), 100_000)
	for id, params := range map[string][]byte{"empty": nil, "plain": large[:700_000], "large": large, "odd": {0x1f, 0x8b, 1}} {
		made, err := q.Submit(ctx, id, []byte("do"), params)
		if err != nil || !made {
			t.Fatalf("submit %s: %v, %v", id, made, err)
		}
		got, err := q.Params(ctx, id)
		if err != nil || !bytes.Equal(got, params) {
			t.Errorf("%s: %d bytes of %d, %v", id, len(got), len(params), err)
		}
	}
	plain, _, err := s.Get(ctx, "/q/params/plain")
	if err != nil || !bytes.Equal(plain, large[:700_000]) {
		t.Errorf("an older release reads %d bytes: %v", len(plain), err)
	}
	whole, _, err := s.Get(ctx, "/q/params/large")
	must(t, err)
	_, err = s.Set(ctx, "/q/params/large", whole[:len(whole)/2], recipe.AnyVersion)
	must(t, err)
	_, err = q.Params(ctx, "large")
	want(t, err, recipe.ErrDamaged)
	if made, err := q.Submit(ctx, "huge", nil, make([]byte, 65<<20)); made || !errors.Is(err, recipe.ErrTooLarge) {
		t.Errorf("65 MiB: %v, %v", made, err)
	}
}
