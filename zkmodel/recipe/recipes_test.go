package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// running runs f until the test ends, which must end it by its context.
func running(t *testing.T, f func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// register runs a Registration until the test ends.
func register(t *testing.T, c *recipe.Client, dir, prefix string, data []byte) (*recipe.Registration, func()) {
	t.Helper()
	r := recipe.NewRegistration(c, dir, prefix, data)
	return r, running(t, r.Run)
}

func TestRegistration(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	c, p := proxied(t, root)
	s := session(t, dial(t, root))
	r, stop := register(t, c, "/components/builder", "nb01", []byte("starting"))
	seen := func() string {
		members, err := recipe.Members(ctx, s, "/components/builder")
		must(t, err)
		var all []string
		for _, m := range members {
			all = append(all, m.Name+" "+string(m.Data))
		}
		return strings.Join(all, ", ")
	}
	expect := func(want string) {
		t.Helper()
		zktest.Eventually(t, func() bool { return seen() == want }, "registered as %s", want)
	}
	expect("nb010000000000 starting")
	r.Set([]byte("running"))
	expect("nb010000000000 running")
	must(t, s.Delete(ctx, r.Path(), recipe.AnyVersion))
	expect("nb010000000001 running")
	old := session(t, c)
	p.Cut()
	lost(t, old.Context(), recipe.ErrSessionLost)
	p.Heal()
	expect("nb010000000002 running")
	other, _ := register(t, c, "/components/builder", "nb01", []byte("second"))
	expect("nb010000000002 running, nb010000000003 second")
	stop()
	expect("nb010000000003 second")
	if r.Path() != "" || other.Path() != "/components/builder/nb010000000003" {
		t.Errorf("paths %q, %q", r.Path(), other.Path())
	}
}

func TestElectionHandsOver(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	leads := make(chan string, 10)
	stand := func(name string) (stop func()) {
		c := dial(t, root)
		return running(t, func(ctx context.Context) error {
			return recipe.NewElection(c, "/e", name).Run(ctx, func(ctx context.Context, h *recipe.Held) error {
				leads <- name
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
	}
	if line, err := recipe.Contenders(ctx, s, "/e"); len(line) > 0 || err != nil {
		t.Errorf("in line without candidates: %v, %v", line, err)
	}
	stopA := stand("a")
	if got := <-leads; got != "a" {
		t.Fatalf("%s leads", got)
	}
	stand("b")
	inLine(t, s, "/e", 2)
	stopA()
	if got := <-leads; got != "b" {
		t.Fatalf("%s leads", got)
	}
	// A leader whose contender is removed is one no more, and stands again.
	line := inLine(t, s, "/e", 1)
	must(t, s.Delete(ctx, "/e/"+line[0].Name, recipe.AnyVersion))
	if got := <-leads; got != "b" {
		t.Fatalf("%s leads", got)
	}
}

func TestPeriodicRunsOnce(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	var mu sync.Mutex
	active, runs := 0, map[string]int{}
	task := func(name string) recipe.Periodic {
		return recipe.Periodic{Every: time.Millisecond, Task: func(context.Context, *recipe.Held) error {
			mu.Lock()
			defer mu.Unlock()
			if active++; active > 1 {
				t.Error("two run the task")
			}
			runs[name]++
			active--
			return errors.New("the next run is due all the same")
		}}
	}
	stops := map[string]func(){}
	for _, name := range []string{"a", "b"} {
		c := dial(t, root)
		stops[name] = running(t, func(ctx context.Context) error {
			return recipe.NewElection(c, "/e", name).Run(ctx, task(name).Lead)
		})
	}
	ran := func(n int) (names []string) {
		mu.Lock()
		defer mu.Unlock()
		for name, count := range runs {
			if count >= n {
				names = append(names, name)
			}
		}
		return names
	}
	zktest.Eventually(t, func() bool { return len(ran(3)) > 0 }, "three runs")
	first := ran(1)
	if len(first) != 1 {
		t.Fatalf("%v ran the task", first)
	}
	stops[first[0]]()
	zktest.Eventually(t, func() bool { return len(ran(3)) == 2 }, "the other takes over")
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	sem := recipe.NewSemaphore(s, "/sem", "test", 5)
	for _, weight := range []int{0, -1, 6} {
		_, err := sem.Acquire(ctx, weight)
		want(t, err, recipe.ErrBadConfig)
	}
	two, err := sem.Acquire(ctx, 2)
	must(t, err)
	three, err := sem.Acquire(ctx, 3)
	must(t, err)
	brief, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = sem.Acquire(brief, 1)
	want(t, err, recipe.ErrLocked)
	want(t, err, context.DeadlineExceeded)

	// A heavy claim is not overtaken by a light one that would fit.
	got := make(chan string, 2)
	claim := func(name string, weight, inLine int) {
		go func() {
			if _, err := sem.Acquire(ctx, weight); err == nil {
				got <- name
			}
		}()
		zktest.Eventually(t, func() bool {
			claims, err := recipe.Claims(ctx, s, "/sem")
			return err == nil && len(claims) == inLine
		}, "%s is in line", name)
	}
	claim("heavy", 5, 3)
	claim("light", 1, 4)
	must(t, three.Release(ctx))
	select {
	case name := <-got:
		t.Fatalf("%s was granted", name)
	case <-time.After(50 * time.Millisecond):
	}
	must(t, two.Release(ctx))
	if name := <-got; name != "heavy" {
		t.Fatalf("%s was granted", name)
	}
}

// TestSemaphoreLimit has many claimants, and never more granted than the limit.
func TestSemaphoreLimit(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	const limit = 4
	var mu sync.Mutex
	used := 0
	use := func(weight int) {
		mu.Lock()
		defer mu.Unlock()
		if used += weight; used > limit {
			t.Errorf("%d of %d used", used, limit)
		}
	}
	var work sync.WaitGroup
	for i := range 6 {
		s := session(t, dial(t, root))
		work.Go(func() {
			for n := range 10 {
				weight := 1 + (i+n)%3
				held, err := recipe.NewSemaphore(s, "/sem", "", limit).Acquire(t.Context(), weight)
				if err != nil {
					t.Error(err)
					return
				}
				use(weight)
				wait(t.Context(), time.Millisecond)
				use(-weight)
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

func TestLtime(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s, c := session(t, dial(t, root)), dial(t, root)
	must(t, s.EnsurePath(ctx, "/t"))
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	last := int64(0)
	for i := range 50 {
		path := fmt.Sprintf("/t/%d", i)
		must(t, s.EnsurePath(ctx, path))
		now, err := recipe.Ltime(ctx, s, "/poolkeeper/ltime")
		must(t, err)
		if now <= last {
			t.Fatalf("time went from %d to %d", last, now)
		}
		last = now
		must(t, tree.WaitFor(patiently(t), now))
		if _, ok := tree.Get(path); !ok {
			t.Fatalf("%s was written before %d, and is not seen", path, now)
		}
	}
}
