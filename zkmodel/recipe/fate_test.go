package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// place is where one call is made, with a fault at one of its requests: a model of ZooKeeper, a session that makes
// the call, and another one.
type place struct {
	t       *testing.T
	cluster *zookeeper.Cluster
	ctx     context.Context
	s, b    *recipe.Session
	held    *recipe.Held // of /r/lock, by s, where the call needs one
	got     []*recipe.Held
}

func newPlace(t *testing.T, prepare func(*place)) *place {
	t.Helper()
	c := zookeeper.New(zookeeper.Options{Seed: 1, Tick: 100 * time.Millisecond, MaxTimeout: time.Minute})
	t.Cleanup(c.Close)
	p := &place{t: t, cluster: c, ctx: t.Context()}
	client := func(name string) *recipe.Session {
		return session(t, dial(t, "", through(c.Addrs()...), func(cfg *recipe.Config) { cfg.Dial = c.Dialer(name) }))
	}
	p.b = client("b")
	must(t, p.b.EnsurePath(p.ctx, "/r/old"))
	p.s = client("a")
	if prepare != nil {
		prepare(p)
	}
	return p
}

// rest is until whatever goes on in the background is over.
func (p *place) rest() { wait(p.ctx, 30*time.Second) }

// line are the contenders at /r/lock, and at /r/old/lock.
func (p *place) line() []string {
	p.t.Helper()
	var all []string
	for _, dir := range []string{"/r/lock", "/r/old/lock"} {
		names, err := p.b.Children(p.t.Context(), dir)
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			p.t.Fatal(err)
		}
		all = append(all, names...)
	}
	return all
}

// holds has s hold /r/lock.
func holds(p *place) {
	var err error
	p.held, err = recipe.NewLock(p.s, "/r/lock", "a").Try(p.ctx)
	must(p.t, err)
}

// before has b hold /r/lock for a second.
func before(p *place) {
	held, err := recipe.NewLock(p.b, "/r/lock", "b").Try(p.ctx)
	must(p.t, err)
	go releaseLater(p.ctx, held)
}

// releaseLater is what a rival does beside a call.
func releaseLater(ctx context.Context, held *recipe.Held) {
	wait(ctx, time.Second)
	_ = held.Release(ctx)
}

// keep notes a lock that was got.
func (p *place) keep(h *recipe.Held, err error) error {
	if err == nil {
		p.got = append(p.got, h)
	} else if h != nil {
		p.t.Errorf("a lock beside the error %v", err)
	}
	return err
}

// fated is a call of which each request meets each fate.
type fated struct {
	prepare func(*place)
	call    func(*place) error
	// done reports whether all is there that the call makes.
	done func(*place) bool
	// reads: a lost answer is an error that the caller sees.
	reads bool
	// bears: it goes on where it is refused something, since it may be there already.
	bears bool
	// others are contenders that come meanwhile.
	others int
	// refused: a request after the one that meets its fate is.
	refused bool
}

// calls are those that take and give locks, and write under them.
func fatedCalls() map[string]fated {
	lock := func(make func(*recipe.Session) *recipe.Lock, try bool) func(*place) error {
		return func(p *place) error {
			l := make(p.s)
			if try {
				return p.keep(l.Try(p.ctx))
			}
			return p.keep(l.Acquire(p.ctx))
		}
	}
	inLine := func(p *place) bool { return len(p.line()) == 1 }
	plain := func(s *recipe.Session) *recipe.Lock { return recipe.NewLock(s, "/r/lock", "a") }
	deep := func(s *recipe.Session) *recipe.Lock {
		return recipe.NewLock(s, "/deep/er/lock", "a", recipe.EnsureParents())
	}
	has := func(path, data string) func(*place) bool {
		return func(p *place) bool {
			got, _, err := p.b.Get(p.ctx, path)
			return err == nil && string(got) == data
		}
	}
	lacks := func(path string) func(*place) bool {
		return func(p *place) bool {
			_, there, err := p.b.Exists(p.ctx, path)
			return err == nil && !there
		}
	}
	return map[string]fated{
		"try": {nil, lock(plain, true), inLine, false, false, 0, false},
		"try, deep": {nil, lock(deep, true), func(p *place) bool {
			locked, err := recipe.Locked(p.ctx, p.b, "/deep/er/lock")
			return locked && err == nil
		}, false, true, 0, false},
		"acquire":             {nil, lock(plain, false), inLine, false, false, 0, false},
		"acquire, in line":    {before, lock(plain, false), inLine, false, false, 0, false},
		"read lock":           {nil, lock(func(s *recipe.Session) *recipe.Lock { return recipe.NewReadLock(s, "/r/lock", "a") }, false), inLine, false, false, 0, false},
		"write lock, in line": {before, lock(func(s *recipe.Session) *recipe.Lock { return recipe.NewWriteLock(s, "/r/lock", "a") }, false), inLine, false, false, 0, false},
		"semaphore": {nil, func(p *place) error {
			return p.keep(recipe.NewSemaphore(p.s, "/r/lock", "a", 3).Acquire(p.ctx, 2))
		}, inLine, false, true, 0, false},
		"semaphore, in line": {func(p *place) {
			held, err := recipe.NewSemaphore(p.b, "/r/lock", "b", 3).Acquire(p.ctx, 2)
			must(p.t, err)
			go releaseLater(p.ctx, held)
		}, func(p *place) error {
			return p.keep(recipe.NewSemaphore(p.s, "/r/lock", "a", 3).Acquire(p.ctx, 2))
		}, inLine, false, false, 0, false},
		"release": {holds, func(p *place) error { return p.held.Release(p.ctx) }, func(p *place) bool { return len(p.line()) == 0 }, false, false, 0, false},
		"set": {holds, func(p *place) error {
			stat, err := p.held.Set(p.ctx, "/r", []byte("new"), 0)
			if err == nil && stat.Version != 1 {
				err = fmt.Errorf("version %d", stat.Version)
			}
			return err
		}, has("/r", "new"), false, false, 0, false},
		"set any": {holds, func(p *place) error {
			_, err := p.held.Set(p.ctx, "/r", []byte("new"), recipe.AnyVersion)
			return err
		}, has("/r", "new"), false, false, 0, false},
		"create": {holds, func(p *place) error {
			path, err := p.held.Create(p.ctx, "/r/new", []byte("new"), recipe.Persistent)
			if err == nil && path != "/r/new" {
				err = errors.New(path)
			}
			return err
		}, has("/r/new", "new"), false, false, 0, false},
		"create unique": {holds, func(p *place) error {
			path, err := p.held.CreateUnique(p.ctx, "/r/u", []byte("mine"), func(data []byte) bool { return string(data) == "mine" })
			if err == nil && !has(path, "mine")(p) {
				err = errors.New(path)
			}
			return err
		}, func(p *place) bool {
			names, err := p.b.Children(p.ctx, "/r")
			return err == nil && len(names) == 3
		}, false, false, 0, false},
		"delete":           {holds, func(p *place) error { return p.held.Delete(p.ctx, "/r/old", recipe.AnyVersion) }, lacks("/r/old"), false, false, 0, false},
		"delete tree":      {holds, func(p *place) error { return p.held.DeleteTree(p.ctx, "/r/old") }, lacks("/r/old"), false, false, 0, false},
		"delete with lock": {holds, func(p *place) error { return p.held.DeleteTree(p.ctx, "/r") }, lacks("/r"), false, false, 0, false},
		"take all": {nil, func(p *place) error {
			held, results, err := recipe.TakeAll(p.ctx, p.s, []*recipe.PendingLock{recipe.NewLock(p.s, "/r/old/lock", "a").Pending(), plain(p.s).Pending()},
				recipe.OpCreate("/r/new", nil, recipe.Persistent))
			if err == nil && (len(held) != 2 || len(results) != 1 || results[0].Path != "/r/new") {
				err = fmt.Errorf("%d locks, %+v", len(held), results)
			}
			p.got = held
			return err
		}, func(p *place) bool { return len(p.line()) == 2 && has("/r/new", "")(p) }, true, false, 0, false},
		"release all": {func(p *place) {
			held, _, err := recipe.TakeAll(p.ctx, p.s, []*recipe.PendingLock{recipe.NewLock(p.s, "/r/old/lock", "a").Pending(), plain(p.s).Pending()})
			must(p.t, err)
			p.got = held
		}, func(p *place) error {
			return recipe.ReleaseAll(p.ctx, p.got, []recipe.Op{recipe.OpSet("/r", []byte("new"), 0)}, []recipe.Op{recipe.OpDelete("/r/lock", recipe.AnyVersion)})
		}, func(p *place) bool { return has("/r", "new")(p) && lacks("/r/lock")(p) }, false, false, 0, false},
		"contenders": {before, func(p *place) error {
			list, err := recipe.Contenders(p.ctx, p.s, "/r/lock")
			if err == nil && (len(list) != 1 || list[0].Identifier != "b" || list[0].Session != p.b.ID() || list[0].Since.IsZero()) {
				err = fmt.Errorf("%+v", list)
			}
			return err
		}, func(*place) bool { return true }, true, false, 0, false},
		"locked": {before, func(p *place) error {
			is, err := recipe.Locked(p.ctx, p.s, "/r/lock")
			if err == nil && !is {
				err = errors.New("not locked")
			}
			return err
		}, func(*place) bool { return true }, true, false, 0, false},
		"claims": {func(p *place) {
			_, err := recipe.NewSemaphore(p.b, "/r/lock", "b", 3).Acquire(p.ctx, 2)
			must(p.t, err)
		}, func(p *place) error {
			list, err := recipe.Claims(p.ctx, p.s, "/r/lock")
			if err == nil && (len(list) != 1 || list[0].Identifier != "b" || list[0].Weight != 2) {
				err = fmt.Errorf("%+v", list)
			}
			return err
		}, func(*place) bool { return true }, true, false, 0, false},
		"rival": {func(p *place) {
			holds(p)
			go func(ctx context.Context) {
				wait(ctx, time.Second)
				held, err := recipe.NewLock(p.b, "/r/lock", "b").Acquire(ctx)
				if err == nil {
					_ = held.Release(ctx)
				}
			}(p.ctx)
		}, func(p *place) error { return p.held.Rival(p.ctx) }, func(p *place) bool { return len(p.line()) == 2 }, false, false, 1, false},
	}
}

// TestEachRequestMeetsItsFate refuses each request of each call, loses it, and loses its answer. What is refused, the caller is
// told; what is lost, is found out; in the end there is what the call makes, once, or nothing, and no contender
// stays that nobody knows of.
func TestEachRequestMeetsItsFate(t *testing.T) {
	t.Parallel()
	fates := map[string]zookeeper.Fate{"refused": zookeeper.Refused, "lost": zookeeper.Lost, "unanswered": zookeeper.Unanswered}
	for name, c := range fatedCalls() {
		for fate, what := range fates {
			t.Run(name+", "+fate, func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more; n++ {
					synctest.Test(t, func(t *testing.T) { more = c.meets(t, n, what, nil) })
					if t.Failed() {
						t.Fatalf("at request %d", n)
					}
				}
			})
		}
	}
}

// TestLossesInARow loses each request, or its answer, and then the next one that the caller sends to see what became of it.
func TestLossesInARow(t *testing.T) {
	t.Parallel()
	for name, c := range fatedCalls() {
		for _, fates := range [][2]zookeeper.Fate{
			{zookeeper.Lost, zookeeper.Refused}, {zookeeper.Unanswered, zookeeper.Refused}, {zookeeper.Lost, zookeeper.Lost}, {zookeeper.Unanswered, zookeeper.Lost}, {zookeeper.Unanswered, zookeeper.Unanswered}, {zookeeper.Lost, zookeeper.Unanswered},
		} {
			t.Run(fmt.Sprint(name, fates), func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more; n++ {
					synctest.Test(t, func(t *testing.T) {
						c := c
						c.refused = fates[1] == zookeeper.Refused
						more = c.meets(t, n, fates[0], func(p *place) { p.cluster.AtRequest("a", 1, nil, fates[1]) })
					})
					if t.Failed() {
						t.Fatalf("at request %d", n)
					}
				}
			})
		}
	}
}

// meets makes the call, whose n-th request has a fate, and reports whether there was one. then is called before it.
func (c fated) meets(t *testing.T, n int, what zookeeper.Fate, then func(*place)) bool {
	t.Helper()
	p := newPlace(t, c.prepare)
	before := len(p.line())
	met := false
	p.cluster.AtRequest("a", n, func() {
		if met = true; then != nil {
			then(p)
		}
	}, what)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	p.ctx = ctx
	err := c.call(p)
	p.ctx = t.Context()
	p.cluster.AtRequest("a", 0, nil, zookeeper.Done)
	done := c.done(p)
	switch {
	case err == nil && !done:
		t.Error("it is done, and nothing has come of it")
	case err == nil && what == zookeeper.Refused && met && !c.bears:
		t.Error("refused, and the caller is told that it is done")
	case err != nil && !met:
		t.Errorf("without a fault: %v", err)
	case err != nil && what == zookeeper.Refused && !errors.Is(err, recipe.ErrAuth):
		t.Errorf("refused, and the caller is told: %v", err)
	case c.refused && errors.Is(err, recipe.ErrAuth):
	case err != nil && what != zookeeper.Refused && (!c.reads || !errors.Is(err, recipe.ErrConnectionLost)):
		t.Errorf("only a connection was lost: %v", err)
	}
	if err != nil {
		p.rest()
		if now := len(p.line()); now > before+c.others {
			t.Errorf("%d contenders, %d before", now, before)
		}
	}
	for _, h := range p.got {
		if h.Lost() == nil {
			_, there, err := p.b.Exists(p.ctx, h.Path())
			if must(t, err); !there {
				t.Errorf("%s is held, and not there", h.Path())
			}
			must(t, h.Release(p.ctx))
		}
	}
	p.rest()
	if left := slices.DeleteFunc(p.line(), func(name string) bool { return p.held != nil && strings.HasSuffix(p.held.Path(), name) }); len(p.got) > 0 && len(left) > 0 {
		t.Errorf("%v stay", left)
	}
	return met
}
