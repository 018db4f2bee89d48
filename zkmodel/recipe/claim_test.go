package recipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// inBubble runs a test beside a model of ZooKeeper, where s holds /r/lock.
func inBubble(t *testing.T, test func(p *place)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newPlace(t, holds)) })
}

// TestWritesThatChangeNothing writes what is there already, and loses the request: it is written all the same, since others count
// versions. A write that is refused for what another did is told as that.
func TestWritesThatChangeNothing(t *testing.T) {
	inBubble(t, func(p *place) {
		ctx := p.ctx
		for version, with := range []int32{0, recipe.AnyVersion} {
			data, _, err := p.b.Get(ctx, "/r")
			must(t, err)
			p.cluster.AtRequest("a", 1, nil, zookeeper.Lost)
			_, err = p.held.Set(ctx, "/r", data, with)
			must(t, err)
			if _, stat, err := p.b.Get(ctx, "/r"); err != nil || stat.Version != int32(version+1) {
				t.Errorf("version %d (%v), want %d", stat.Version, err, version+1)
			}
		}
		_, err := p.held.Set(ctx, "/r", nil, 0)
		want(t, err, recipe.ErrVersion)
		_, err = p.held.Create(ctx, "/r/old", nil, recipe.Persistent)
		want(t, err, recipe.ErrNodeExists) // not made by us, though it is as we would make it
		want(t, p.held.Delete(ctx, "/r/none", recipe.AnyVersion), recipe.ErrNoNode)
		p.cluster.AtRequest("a", 1, func() {
			_, err := p.b.Create(ctx, "/r/theirs", []byte("theirs"), recipe.Persistent)
			must(t, err)
		}, zookeeper.Lost)
		_, err = p.held.Create(ctx, "/r/theirs", []byte("ours"), recipe.Persistent)
		want(t, err, recipe.ErrNodeExists)
	})
}

// TestUniqueAmongOthers makes a node whose answer is lost beside such as look like it: only one with a sequence number and our
// data is ours.
func TestUniqueAmongOthers(t *testing.T) {
	inBubble(t, func(p *place) {
		mine := func(data []byte) bool { return bytes.Equal(data, []byte("mine")) }
		for _, name := range []string{"/r/u-notes", "/r/umine0000000009x", "/r/v0000000001"} {
			_, err := p.b.Create(p.ctx, name, []byte("mine"), recipe.Persistent)
			must(t, err)
		}
		theirs, err := p.b.Create(p.ctx, "/r/u", []byte("theirs"), recipe.Persistent|recipe.Sequential)
		must(t, err)
		for _, fate := range []zookeeper.Fate{zookeeper.Lost, zookeeper.Unanswered} {
			p.cluster.AtRequest("a", 1, func() {
				_, err := p.b.Create(p.ctx, "/r/u", []byte("theirs"), recipe.Persistent|recipe.Sequential)
				must(t, err)
			}, fate)
			path, err := p.held.CreateUnique(p.ctx, "/r/u", []byte("mine"), mine)
			if must(t, err); path == theirs || len(path) != len(theirs) {
				t.Errorf("%s is ours", path)
			}
			if data, _, err := p.b.Get(p.ctx, path); err != nil || !mine(data) {
				t.Errorf("%s is ours, with %q (%v)", path, data, err)
			}
			must(t, p.held.Delete(p.ctx, path, recipe.AnyVersion))
		}
	})
}

// TestWhatIsFoundOutMayBeRefused loses the answer to a write, and then refuses each of the requests that find out what became of it, or
// has the lock removed before it. The caller is told what is refused, and that the lock is lost; it is never told of what is not there.
func TestWhatIsFoundOutMayBeRefused(t *testing.T) {
	t.Parallel()
	for name, c := range fatedCalls() {
		for what, second := range map[string]zookeeper.Fate{"refused": zookeeper.Refused, "removed": zookeeper.Done} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more && !t.Failed(); n++ {
					synctest.Test(t, func(t *testing.T) {
						more = false
						p := newPlace(t, c.prepare)
						before := len(p.line())
						p.cluster.AtRequest("a", 1, func() {
							p.cluster.AtRequest("a", n, func() {
								if more = true; second == zookeeper.Done {
									remove(p)
								}
							}, second)
						}, zookeeper.Unanswered)
						ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
						defer stop()
						p.ctx = ctx
						err := c.call(p)
						p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
						switch {
						case err == nil && !c.done(p) && second == zookeeper.Refused:
							t.Errorf("request %d: it is done, and nothing has come of it", n)
						case err == nil || errors.Is(err, recipe.ErrAuth) && second == zookeeper.Refused:
						case errors.Is(err, recipe.ErrFenceLost) && second == zookeeper.Done:
						case errors.Is(err, recipe.ErrConnectionLost) && c.reads:
						default:
							t.Errorf("request %d: %v", n, err)
						}
						if p.rest(); err != nil && second == zookeeper.Refused && len(p.line()) > before+c.others {
							t.Errorf("request %d: %v stay", n, p.line())
						}
					})
				}
			})
		}
	}
}

// TestLateOrphans has a contender whose creation was not answered be looked for in vain, twice: it goes all the same.
func TestLateOrphans(t *testing.T) {
	t.Parallel()
	for n := 1; n < 4; n++ {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t, func(p *place) { must(p.t, p.b.EnsurePath(p.ctx, "/r/lock")) })
			refuse := func() { p.cluster.AtRequest("a", n, nil, zookeeper.Refused) }
			p.cluster.AtRequest("a", 2, func() { p.cluster.AtRequest("a", 1, refuse, zookeeper.Refused) }, zookeeper.Unanswered)
			_, err := recipe.NewLock(p.s, "/r/lock", "a").Try(t.Context())
			want(t, err, recipe.ErrAuth)
			p.rest()
			if names := p.line(); len(names) > 0 {
				t.Errorf("%v stay", names)
			}
			if _, there, err := p.b.Exists(t.Context(), "/r/lock"); !there || err != nil {
				t.Errorf("the line is gone, too: %v", err)
			}
		})
	}
}

// TestReleasedLocksWriteNothing gives locks up, one way or the other: nothing is asked for with them any more.
func TestReleasedLocksWriteNothing(t *testing.T) {
	inBubble(t, func(p *place) {
		ctx := p.ctx
		must(t, p.held.DeleteTree(ctx, "/r/old"))
		if p.held.Lost() != nil {
			t.Errorf("lost with what is not below it: %v", p.held.Lost())
		}
		p.cluster.AtRequest("a", 2, func() { t.Error("a release takes one request, and what is released none") }, zookeeper.Done)
		must(t, p.held.Release(ctx))
		want(t, p.held.Lost(), recipe.ErrReleased)
		_, err := p.held.Multi(ctx, recipe.OpSet("/r", []byte("late"), recipe.AnyVersion))
		want(t, err, recipe.ErrReleased)
		_, err = p.held.Multi(ctx)
		want(t, err, recipe.ErrReleased)
		want(t, recipe.ReleaseAll(ctx, []*recipe.Held{p.held}, nil, nil), recipe.ErrReleased)
		want(t, recipe.ReleaseAll(ctx, nil, []recipe.Op{recipe.OpDelete("/r", recipe.AnyVersion)}, nil), recipe.ErrBadPath)
		if held, results, err := recipe.TakeAll(ctx, p.s, nil); held != nil || results != nil || err != nil {
			t.Errorf("nothing is taken: %v, %v, %v", held, results, err)
		}
		wait(ctx, time.Second)
		p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
		holds(p)
		must(t, p.held.DeleteTree(ctx, "/r"))
		want(t, p.held.Lost(), recipe.ErrReleased)
	})
}

// TestClaimsThatCanNeverBe refuses a claim of nothing, and of more than there is, without a word to the server.
func TestClaimsThatCanNeverBe(t *testing.T) {
	inBubble(t, func(p *place) {
		p.cluster.AtRequest("a", 1, func() { t.Error("it is asked for") }, zookeeper.Done)
		for weight, ok := range map[int]bool{-1: false, 0: false, 4: false} {
			if _, err := recipe.NewSemaphore(p.s, "/r/sem", "a", 3).Acquire(p.ctx, weight); !errors.Is(err, recipe.ErrBadConfig) != ok {
				t.Errorf("%d of 3: %v", weight, err)
			}
		}
		p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
		for _, weight := range []int{1, 3} {
			h, err := recipe.NewSemaphore(p.s, "/r/sem", "a", 3).Acquire(p.ctx, weight)
			must(t, err)
			must(t, h.Release(p.ctx))
		}
	})
}

// TestTakeAllGivenUp gives up while a transaction takes locks: none of them stays.
func TestTakeAllGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		ctx, giveUp := context.WithCancel(t.Context())
		p.cluster.AtRequest("a", 1, func() { giveUp(); wait(t.Context(), 50*time.Millisecond) }, zookeeper.Done)
		_, _, err := recipe.TakeAll(ctx, p.s, []*recipe.PendingLock{recipe.NewLock(p.s, "/r/old/lock", "a").Pending(), recipe.NewLock(p.s, "/r/lock", "a").Pending()})
		want(t, err, context.Canceled)
		p.rest()
		if names := p.line(); len(names) > 0 {
			t.Errorf("%v stay", names)
		}
		if e := (&recipe.HeldUpError{Dir: "/r", By: []recipe.Contender{{Name: "n", Identifier: "i"}, {Name: "m"}}}); fmt.Sprint(e.By[0].Identifier) != "i" || !bytes.Contains([]byte(e.Error()), []byte("held by i, m")) {
			t.Errorf("%v", e)
		}
	})
}

// TestReleasesThatFailElsewhere releases locks beside a change that cannot be: the caller is told of that, and no lock is lost.
func TestReleasesThatFailElsewhere(t *testing.T) {
	inBubble(t, func(p *place) {
		missing := []recipe.Op{recipe.OpDelete("/r/none", recipe.AnyVersion)}
		for _, ops := range [][2][]recipe.Op{{missing, nil}, {nil, missing}} {
			err := recipe.ReleaseAll(p.ctx, []*recipe.Held{p.held}, ops[0], ops[1])
			if want(t, err, recipe.ErrNoNode); errors.Is(err, recipe.ErrFenceLost) || p.held.Lost() != nil {
				t.Errorf("%v, lost: %v", err, p.held.Lost())
			}
		}
	})
}

// TestWhoGivesUpIsTold gives up in a line, while who held it up cannot be told: the error is that of giving up all the same. Only a writer
// is told who did.
func TestWhoGivesUpIsTold(t *testing.T) {
	inBubble(t, func(p *place) {
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(p.ctx, time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		var up *recipe.HeldUpError
		_, err := recipe.NewLock(p.b, "/r/lock", "b").Acquire(brief())
		if want(t, err, recipe.ErrLocked); errors.As(err, &up) {
			t.Errorf("a plain lock: %v", err)
		}
		for n, by := range []int{0, 0, 1} { // the list, the contender, none
			go func() {
				wait(p.ctx, 900*time.Millisecond)
				p.cluster.AtRequest("b", n+1, nil, zookeeper.Refused)
			}()
			_, err = recipe.NewWriteLock(p.b, "/r/lock", "b").Acquire(brief())
			if want(t, err, recipe.ErrLocked); !errors.As(err, &up) || len(up.By) != by {
				t.Errorf("request %d is refused: %v", n+1, err)
			}
			p.cluster.AtRequest("b", 0, nil, zookeeper.Done)
			wait(p.ctx, time.Second)
		}
	})
}

// TestClaimsAmongOthers lists claims of what is not there, and of where other things lie.
func TestClaimsAmongOthers(t *testing.T) {
	inBubble(t, func(p *place) {
		if claims, err := recipe.Claims(p.ctx, p.b, "/r/none"); claims != nil || err != nil {
			t.Errorf("%v, %v", claims, err)
		}
		must(t, p.b.EnsurePath(p.ctx, "/r/sem/notes"))
		if claims, err := recipe.Claims(p.ctx, p.b, "/r/sem"); len(claims) != 0 || err != nil {
			t.Errorf("%v, %v", claims, err)
		}
		// What is no claim takes no room, however it looks like one.
		for _, name := range []string{"x__claim__99999999999__0000000000", "x__claim__2__000000000x", "x__claim__2", "x__claim____0000000000", "x__claim__-1__0000000000"} {
			must(t, p.b.EnsurePath(p.ctx, "/r/sem/"+name))
		}
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		defer cancel()
		held, err := recipe.NewSemaphore(p.b, "/r/sem", "b", 1).Acquire(ctx, 1)
		must(t, err)
		if claims, err := recipe.Claims(p.ctx, p.b, "/r/sem"); len(claims) != 1 || err != nil {
			t.Errorf("%v, %v", claims, err)
		}
		must(t, held.Release(p.ctx))
	})
}
