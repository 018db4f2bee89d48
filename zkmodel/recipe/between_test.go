package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// between calls f before the n-th request of a call arrives, for each n, until the call has no more.
func between(t *testing.T, c fated, f func(p *place), judge func(p *place, err error, done bool)) {
	t.Helper()
	for n, more := 1, true; more && !t.Failed(); n++ {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t, c.prepare)
			p.cluster.AtRequest("a", n, func() { f(p) }, zookeeper.Done)
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			p.ctx = ctx
			err := c.call(p)
			p.ctx = t.Context()
			more = p.cluster.Stopped("a")
			p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
			if judge(p, err, c.done(p)); t.Failed() {
				t.Errorf("before request %d: %v", n, err)
			}
		})
	}
}

// remove has an operator remove all contenders of /r/lock and /r/old/lock but b's.
func remove(p *place) {
	for _, dir := range []string{"/r/lock", "/r/old/lock"} {
		names, _ := p.b.Children(context.Background(), dir) // it may not be there
		for _, name := range names {
			if data, _, err := p.b.Get(context.Background(), dir+"/"+name); err == nil && string(data) != "b" {
				_ = p.b.Delete(context.Background(), dir+"/"+name, recipe.AnyVersion)
			}
		}
	}
}

// TestLostLocksWriteNothing removes the contender before each request of each write: what is written then is written by
// nobody, and the caller is told. A lock that is got although an operator removes contenders is in line.
func TestLostLocksWriteNothing(t *testing.T) {
	t.Parallel()
	for name, c := range fatedCalls() {
		if c.reads && name != "take all" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between(t, c, remove, func(p *place, err error, done bool) {
				switch {
				case err != nil && !errors.Is(err, recipe.ErrFenceLost) && !errors.Is(err, recipe.ErrReleased):
					p.t.Errorf("the lock was lost, and the caller is told: %v", err)
				case err != nil && p.held == nil && name != "try" && name != "try, deep" && name != "take all" && name != "release all":
					p.t.Error("who waits stands in line again")
				case err != nil && p.held != nil && done && name != "release":
					p.t.Error("the lock was lost, and the write is done")
				case err == nil && !done && p.held != nil:
					p.t.Error("it is done, and nothing has come of it")
				}
				p.rest()
				for _, h := range append(p.got, p.held) {
					if h == nil || h.Lost() != nil {
						continue
					}
					_, there, err := p.b.Exists(p.ctx, h.Path())
					if must(p.t, err); !there {
						p.t.Errorf("%s is held, and gone", h.Path())
					}
				}
			})
		})
	}
}

// TestEndedSessionsHoldNothing ends the session before each request of each call: the caller is told so, whatever it does, and
// no contender stays.
func TestEndedSessionsHoldNothing(t *testing.T) {
	t.Parallel()
	for name, c := range fatedCalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between(t, c, func(p *place) { p.cluster.Expire("a") }, func(p *place, err error, _ bool) {
				if p.s.Context().Err() == nil && err == nil {
					return // it had no such request
				}
				if name == "release" {
					must(p.t, err) // it is released, by the end
				}
				if err != nil && !errors.Is(err, recipe.ErrSessionLost) && (!c.reads || !errors.Is(err, recipe.ErrConnectionLost)) {
					p.t.Errorf("the session is over, and the caller is told: %v", err)
				}
				p.rest()
				for _, h := range append(p.got, p.held) {
					if h != nil && h.Lost() == nil {
						p.t.Error("a lock is held by a session that is over")
					}
				}
				if left := len(p.line()) - c.others; left > 0 && name != "claims" {
					p.t.Errorf("%d contenders stay", left)
				}
			})
		})
	}
}

// TestOneHoldsTheLock has another stand in line before each request of one that wants the lock: one of them has it at a time, in the
// order of the line, and who gives up leaves nothing behind.
func TestOneHoldsTheLock(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*recipe.Session, string) *recipe.Lock{
		"lock":  func(s *recipe.Session, who string) *recipe.Lock { return recipe.NewLock(s, "/r/lock", who) },
		"read":  func(s *recipe.Session, who string) *recipe.Lock { return recipe.NewReadLock(s, "/r/lock", who) },
		"write": func(s *recipe.Session, who string) *recipe.Lock { return recipe.NewWriteLock(s, "/r/lock", who) },
	}
	for mine, a := range kinds {
		for theirs, b := range kinds {
			for _, try := range []bool{true, false} {
				name := mine + " beside " + theirs
				if try {
					name = "try " + name
				}
				// Readers share; a plain lock does not know of readers.
				shared := mine == "read" && theirs == "read" || mine == "read" && theirs == "lock" || mine == "lock" && theirs == "read"
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					var theirsIs atomic.Bool
					c := fated{call: func(p *place) error {
						if try {
							return p.keep(a(p.s, "a").Try(p.ctx))
						}
						return p.keep(a(p.s, "a").Acquire(p.ctx))
					}, done: func(*place) bool { return true }}
					between(t, c, func(p *place) {
						theirsIs.Store(false)
						go func() {
							held, err := b(p.b, "b").Acquire(p.t.Context())
							if err != nil {
								return
							}
							theirsIs.Store(true)
							wait(p.t.Context(), time.Second)
							theirsIs.Store(false)
							_ = held.Release(p.t.Context())
						}()
						wait(p.t.Context(), 50*time.Millisecond)
					}, func(p *place, err error, _ bool) {
						if err != nil && (!try || !errors.Is(err, recipe.ErrLocked)) {
							p.t.Errorf("nothing is wrong: %v", err)
						}
						if err == nil && theirsIs.Load() && !shared {
							p.t.Error("both hold the lock")
						}
						if err != nil && len(p.line()) > 1 {
							wait(p.t.Context(), 50*time.Millisecond)
							if names := p.line(); len(names) > 1 {
								p.t.Errorf("%v are in line, one of them for nothing", names)
							}
						}
						for _, h := range p.got {
							must(p.t, h.Release(p.ctx))
						}
						p.rest()
						if names := p.line(); len(names) > 0 {
							p.t.Errorf("%v stay", names)
						}
					})
				})
			}
		}
	}
}

// TestKeptLocksAreWatched removes contenders of locks that are held, of all that can be: each context ends with the reason, also of
// one that a transaction has taken, and one that changes in another way is held still.
func TestKeptLocksAreWatched(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(p *place) (*recipe.Held, error){
		"lock": func(p *place) (*recipe.Held, error) { return recipe.NewLock(p.s, "/r/lock", "a").Try(p.ctx) },
		"read": func(p *place) (*recipe.Held, error) { return recipe.NewReadLock(p.s, "/r/lock", "a").Acquire(p.ctx) },
		"semaphore": func(p *place) (*recipe.Held, error) {
			return recipe.NewSemaphore(p.s, "/r/lock", "a", 2).Acquire(p.ctx, 1)
		},
		"taken with others": func(p *place) (*recipe.Held, error) {
			held, _, err := recipe.TakeAll(p.ctx, p.s, []*recipe.PendingLock{recipe.NewLock(p.s, "/r/lock", "a").Pending()})
			if err != nil {
				return nil, err
			}
			return held[0], nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t, nil)
				h, err := take(p)
				must(t, err)
				wait(t.Context(), time.Second)
				for range 2 { // a watch tells once
					_, err = p.b.Set(t.Context(), h.Path(), []byte("changed"), recipe.AnyVersion)
					must(t, err)
					wait(t.Context(), time.Second)
				}
				p.cluster.AtRequest("a", 1, func() { t.Error("it goes on asking") }, zookeeper.Done)
				wait(t.Context(), time.Second)
				p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
				p.cluster.Break("a")
				wait(t.Context(), 5*time.Second)
				if h.Lost() != nil {
					t.Fatalf("lost, for nothing: %v", h.Lost())
				}
				must(t, p.b.Delete(t.Context(), h.Path(), recipe.AnyVersion))
				wait(t.Context(), time.Second)
				want(t, h.Lost(), recipe.ErrFenceLost)
				if h.Context().Err() == nil || !strings.Contains(h.Lost().Error(), h.Path()) {
					t.Errorf("it ends with %v", h.Lost())
				}
				if _, err := h.Multi(t.Context()); !errors.Is(err, recipe.ErrFenceLost) {
					t.Errorf("a look at the fence alone: %v", err)
				}
				want(t, h.DeleteTree(t.Context(), "/r"), recipe.ErrFenceLost)
			})
		})
	}
}

// TestFenceAlone looks at a fence without a write: it tells whether the lock is held, also before its end is known.
func TestFenceAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, holds)
		if results, err := p.held.Multi(t.Context()); err != nil || len(results) != 1 {
			t.Errorf("%+v, %v", results, err)
		}
		p.cluster.Slow("a", time.Second) // so that the event comes after the answer to what is asked now
		p.cluster.AtRequest("a", 1, func() { remove(p) }, zookeeper.Done)
		_, err := p.held.Multi(t.Context())
		want(t, err, recipe.ErrFenceLost)
	})
}

// TestLinesAreListed lists those in line as they came, with what they say of themselves; those who left meanwhile are left out.
func TestLinesAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		var held []*recipe.Held
		for _, who := range []string{"first", "second", "third"} {
			h, err := recipe.NewReadLock(p.b, "/r/lock", who).Acquire(t.Context())
			must(t, err)
			held = append(held, h)
		}
		var sems []*recipe.Held
		for _, who := range []string{"first", "second", "third"} {
			h, err := recipe.NewSemaphore(p.b, "/r/sem", who, 9).Acquire(t.Context(), 2)
			must(t, err)
			sems = append(sems, h)
		}
		line, err := recipe.Contenders(t.Context(), p.s, "/r/lock")
		if must(t, err); len(line) != 0 {
			t.Errorf("readers hold a lock: %v", line)
		}
		plain := make(chan *recipe.Held, 2)
		for _, who := range []string{"first", "second"} {
			go func() {
				if h, err := recipe.NewLock(p.b, "/r/plain", who).Acquire(t.Context()); err == nil {
					plain <- h
				}
			}()
			wait(t.Context(), time.Second)
		}
		p.cluster.AtRequest("a", 2, func() { must(t, (<-plain).Release(t.Context())) }, zookeeper.Done)
		line, err = recipe.Contenders(t.Context(), p.s, "/r/plain")
		if must(t, err); len(line) != 1 || line[0].Identifier != "second" {
			t.Errorf("%+v are in line, after the first has left", line)
		}
		p.cluster.AtRequest("a", 3, func() { must(t, sems[1].Release(t.Context())) }, zookeeper.Done)
		claims, err := recipe.Claims(t.Context(), p.s, "/r/sem")
		must(t, err)
		var names []string
		for _, c := range claims {
			names = append(names, c.Identifier)
			if c.Since.IsZero() || c.Weight != 2 {
				t.Errorf("%+v", c)
			}
		}
		if !slices.Equal(names, []string{"first", "third"}) {
			t.Errorf("claims of %v", names)
		}
		// A writer that gives up names those before it, as far as they are there still.
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = recipe.NewWriteLock(p.s, "/r/lock", "writer").Acquire(brief)
		var up *recipe.HeldUpError
		if !errors.As(err, &up) || len(up.By) != 3 || up.By[0].Identifier != "first" || up.By[2].Identifier != "third" {
			t.Errorf("%v", err)
		}
		must(t, held[0].Release(t.Context()))
		if list, err := recipe.Contenders(t.Context(), p.s, "/r/none"); err != nil || list != nil {
			t.Errorf("of what is not there: %v, %v", list, err)
		}
		if is, err := recipe.Locked(t.Context(), p.s, "/r/none"); is || err != nil {
			t.Errorf("of what is not there: %t, %v", is, err)
		}
	})
}

// TestReleasesBetweenRequests has the one before leave before each request of one that waits: it gets the lock.
func TestReleasesBetweenRequests(t *testing.T) {
	t.Parallel()
	for name, take := range waiters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var theirs *recipe.Held
			c := fated{prepare: func(p *place) {
				var err error
				theirs, err = take(p.t.Context(), p.b, "b")
				must(p.t, err)
			}, call: func(p *place) error { return p.keep(take(p.ctx, p.s, "a")) }, done: func(*place) bool { return true }}
			left := false
			between(t, c, func(p *place) { must(p.t, theirs.Release(p.t.Context())); left = true }, func(p *place, err error, _ bool) {
				if left && !errors.Is(err, context.DeadlineExceeded) { // not when it has given up, and asks who held it up
					must(p.t, err)
				}
				left = false
			})
		})
	}
}

// waiters take locks of all kinds for which one waits.
func waiters() map[string]func(ctx context.Context, s *recipe.Session, who string) (*recipe.Held, error) {
	type taker = func(ctx context.Context, s *recipe.Session, who string) (*recipe.Held, error)
	return map[string]taker{
		"lock": func(ctx context.Context, s *recipe.Session, who string) (*recipe.Held, error) {
			return recipe.NewLock(s, "/r/lock", who).Acquire(ctx)
		},
		"write": func(ctx context.Context, s *recipe.Session, who string) (*recipe.Held, error) {
			return recipe.NewWriteLock(s, "/r/lock", who).Acquire(ctx)
		},
		"semaphore": func(ctx context.Context, s *recipe.Session, who string) (*recipe.Held, error) {
			return recipe.NewSemaphore(s, "/r/lock", who, 3).Acquire(ctx, 2)
		},
	}
}

// TestGivingUpLeavesNothing gives up before each request of one that waits, and of one that need not: no contender stays, and the error
// says that it gave up.
func TestGivingUpLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, take := range waiters() {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", name, behind), func(t *testing.T) {
				t.Parallel()
				var giveUp context.CancelFunc
				c := fated{call: func(p *place) error {
					ctx, cancel := context.WithCancel(p.ctx)
					giveUp = cancel
					return p.keep(take(ctx, p.s, "a"))
				}, done: func(*place) bool { return true }}
				if behind {
					c.prepare = func(p *place) {
						held, err := take(p.t.Context(), p.b, "b")
						must(p.t, err)
						time.AfterFunc(time.Second, func() { _ = held.Release(p.t.Context()) })
					}
				}
				between(t, c, func(p *place) { giveUp(); wait(p.t.Context(), 50*time.Millisecond) }, func(p *place, err error, _ bool) {
					if err != nil {
						want(p.t, err, context.Canceled)
					}
					for _, h := range p.got {
						must(p.t, h.Release(p.ctx))
					}
					p.rest()
					if names := p.line(); len(names) > 0 {
						p.t.Errorf("%v stay", names)
					}
				})
			})
		}
	}
}

// TestTryLooksFirst tries a lock that another holds, with one read: a contender would fail the tries of others.
func TestTryLooksFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, before)
		p.cluster.AtRequest("a", 2, func() { t.Error("it does more than to look") }, zookeeper.Done)
		_, err := recipe.NewLock(p.s, "/r/lock", "a").Try(t.Context())
		want(t, err, recipe.ErrLocked)
		wait(t.Context(), 100*time.Millisecond)
		p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
	})
}

// TestReleaseGoesOn refuses a release: the caller is told, the lock counts as given up at once, and is, as soon as it may be.
func TestReleaseGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, holds)
		p.cluster.AtRequest("a", 1, func() {
			if want(t, p.held.Lost(), recipe.ErrReleased); p.held.Context().Err() == nil {
				t.Error("work under the lock goes on while it is given up")
			}
		}, zookeeper.Refused)
		want(t, p.held.Release(t.Context()), recipe.ErrAuth)
		p.rest()
		if names := p.line(); len(names) > 0 {
			t.Errorf("%v stay", names)
		}
	})
}
