package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// decider is a daemon that decides, behind its gate.
type decider struct {
	*listener
	*fleet.Gate
	proxy *zktest.Proxy
}

// decider starts a daemon with a session of its own, which ends with the test.
func (w *town) decider(who string, patience time.Duration) *decider {
	w.Helper()
	d := &decider{listener: w.listener(filepath.Join(w.TempDir(), "kept")), proxy: zktest.StartProxy(w.T, zktest.Shared(w.T).Addr())}
	client, err := recipe.Dial(recipe.Config{Servers: []string{d.proxy.Addr()}, Chroot: w.root, Timeout: 2 * time.Second})
	must(w.T, err)
	w.Cleanup(client.Close)
	d.Gate = fleet.NewGate(who, d.Agent, hclog.New(&hclog.LoggerOptions{Output: d.listener}))
	if patience > 0 {
		d.SetPatience(patience)
	}
	ctx, cancel := context.WithCancel(w.Context())
	var group sync.WaitGroup
	w.Cleanup(func() { cancel(); group.Wait() })
	group.Go(func() { _ = fleet.Follow(ctx, client, d.Agent, func() { d.looks() }, func(error) {}) })
	group.Go(func() { _ = d.Run(ctx, client) })
	return d
}

// readers waits until so many daemons hold the read side.
func (w *town) readers(n int) {
	w.Helper()
	zktest.Eventually(w.T, func() bool {
		names, _ := w.session.Children(w.Context(), fleet.DecisionsPath)
		return len(names) == n && !strings.Contains(strings.Join(names, " "), "__lock__")
	}, "%d daemons have the lock", n)
}

// A push waits for the decisions that are under way, names whose they are when it gives up,
// and then has changed nothing; forced, it does not wait. Others decide again meanwhile. It
// would catch a push that switches under a decision, and one that leaves its lock or its text.
func TestPushWaitsForDecisions(t *testing.T) {
	w := newTown(t)
	one := w.push(w.anna, "one")
	slow, quick := w.decider("builder on a", 0), w.decider("launcher on b", 0)
	w.readers(2)
	leave := slow.Enter(t.Context())
	quick.Enter(t.Context())()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := w.store.Push(short, w.anna, w.draft("two"))
	if !errors.Is(err, fleet.ErrDecisions) || !strings.Contains(err.Error(), "held up by builder on a; --force") {
		t.Fatalf("held up: %v", err)
	}
	blobs, err := w.session.Children(t.Context(), fleet.BlobsPath)
	must(t, err)
	if current, err := w.store.Current(t.Context()); err != nil || current.ID() != one.ID() || len(blobs) != 1 {
		t.Errorf("it has changed: %+v, %v, %d texts", current, err, len(blobs))
	}
	quick.Enter(t.Context())() // at once, as nobody waits for the lock any more
	forced := w.draft("two")
	forced.Force = true
	two, err := w.store.Push(t.Context(), w.anna, forced)
	must(t, err)
	zktest.Eventually(t, func() bool { return quick.Self().ID == two.ID() }, "the other daemon runs it")
	pushed := make(chan error, 1)
	draft := w.draft("three")
	go func() {
		_, err := w.store.Push(t.Context(), w.anna, draft)
		pushed <- err
	}()
	select {
	case err := <-pushed:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	leave()
	must(t, <-pushed)
	// Who decides next does so by what was pushed, without being told to wait for it.
	for _, d := range []*decider{slow, quick} {
		d.Enter(t.Context())()
		if got := string(d.Running().Text); got != "three" {
			t.Errorf("%q decides", got)
		}
	}
}

// Two builders and two launchers decide all the time, while versions are pushed and sessions
// are lost: no two decide by different versions at any moment. It would catch a gate that
// opens before the new version runs, or that stays open without the lock.
func TestDecisionsAreOfOneVersion(t *testing.T) {
	w := newTown(t)
	w.push(w.anna, "0")
	var mu sync.Mutex
	active, made := map[int]string{}, map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var all []*decider
	for i, who := range []string{"builder on a", "builder on b", "launcher on c", "launcher on d"} {
		d := w.decider(who, time.Minute)
		all = append(all, d)
		group.Go(func() {
			for ctx.Err() == nil {
				leave := d.Enter(ctx)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				active[i] = string(d.Running().Text)
				made[active[i]]++
				for other, text := range active {
					if text != active[i] {
						t.Errorf("%d decides by %q, %d by %q", i, active[i], other, text)
					}
				}
				mu.Unlock()
				<-time.After(time.Millisecond) // a decision takes as long
				mu.Lock()
				delete(active, i)
				mu.Unlock()
				leave()
			}
		})
	}
	w.readers(4)
	for n := range 5 {
		if n == 3 { // one loses its session, and is not waited for
			all[2].proxy.Cut()
		}
		text := fmt.Sprint(n + 1)
		w.push(w.bo, text)
		if n == 3 {
			all[2].proxy.Heal()
		}
		zktest.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return made[text] > 20
		}, "decisions by version %s", text)
		w.readers(4)
	}
}

// Whatever becomes of the lock, a daemon goes on: a writer that keeps it, a lock that ZooKeeper
// refuses. It says so once. It would catch a fleet that stands still for a lock.
func TestDecisionsGoOnWithoutTheLock(t *testing.T) {
	w := newTown(t)
	w.push(w.anna, "one")
	d := w.decider("builder on a", time.Minute)
	d.Enter(t.Context())() // it is open
	d.SetPatience(100 * time.Millisecond)
	kept, err := recipe.NewWriteLock(w.session, fleet.DecisionsPath, "admin").Acquire(t.Context())
	must(t, err)
	for range 3 {
		d.Enter(t.Context())()
	}
	const goesOn = "go on without the fleet's lock"
	if got := d.says(goesOn); got != 1 {
		t.Errorf("it says so %d times", got)
	}
	d.SetPatience(time.Minute)
	must(t, kept.Release(t.Context()))
	d.Enter(t.Context())()
	w.readers(1)
	allow := zktest.Forbid(t, zktest.Shared(t).Addr(), w.root, fleet.DecisionsPath)
	refused := w.decider("builder on b", time.Minute)
	refused.Enter(t.Context())()
	if got := refused.says("Cannot take the fleet's lock; decisions go on without it"); got != 1 {
		t.Errorf("it says so %d times:\n%s", got, refused.log)
	}
	allow()
	w.readers(2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	none := fleet.NewGate("nobody", d.Agent, hclog.New(&hclog.LoggerOptions{Output: &bytes.Buffer{}}))
	none.Enter(ended)() // who is told to stop does not wait
}

// BenchmarkDecision is what a decision costs behind the gate: no round trip.
func BenchmarkDecision(b *testing.B) {
	var none *fleet.Gate
	for name, g := range map[string]*fleet.Gate{"file": none, "fleet": fleet.Opened()} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			for b.Loop() {
				g.Enter(ctx)()
			}
		})
	}
}
