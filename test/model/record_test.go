package model_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/test/model"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short is how long sessions last without word.
const short = 2 * time.Second

// recorder writes down what several clients do, in the order in which calls return.
type recorder struct {
	t     *testing.T
	start time.Time

	mu     sync.Mutex
	events []model.Event
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	return &recorder{t: t, start: time.Now()}
}

// now is a moment of the recording; 0 is before all.
func (r *recorder) now() int64 { return time.Since(r.start).Nanoseconds() + 1 }

func (r *recorder) add(e model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Result == "ok" {
		e.Return = r.now()
	}
	r.events = append(r.events, e)
}

// call does op and writes it down; what failed may have happened or not, unless surely says no.
func (r *recorder) call(client int, op, value string, surely func(error) bool, do func() (string, error)) error {
	e := model.Event{Client: client, Op: op, Value: value, Call: r.now()}
	got, err := do()
	if got != "" {
		e.Value = got
	}
	switch {
	case err == nil:
		e.Result = "ok"
	case surely != nil && surely(err):
		e.Result, e.Return = "not", e.Call
	default:
		e.Result, e.Return = "unknown", model.Never
	}
	r.add(e)
	return err
}

// lost writes down that a client knows of the end of its session.
func (r *recorder) lost(client int) { r.add(model.Event{Client: client, Op: "lose", Result: "ok"}) }

// all is what has been written down, and fails the test where one of ops never succeeded.
func (r *recorder) all(ops ...string) []model.Event {
	r.t.Helper()
	for _, op := range ops {
		if !slices.ContainsFunc(r.events, func(e model.Event) bool { return e.Op == op && e.Result == "ok" }) {
			r.t.Errorf("no %q in the history", op)
		}
	}
	for _, e := range r.events {
		r.t.Logf("%+v", e)
	}
	return r.events
}

// never says of reads, and of those that wait, that an error leaves nothing behind.
func never(error) bool { return true }

// client is one of several, behind a network of its own.
type client struct {
	*recipe.Client
	proxy *zktest.Proxy
}

func connect(t *testing.T, root string) *client {
	t.Helper()
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	c, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: root, Timeout: short})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &client{c, proxy}
}

// cutOff cuts a client off until what it has is lost, and lets it back.
func (c *client) cutOff(t *testing.T, has context.Context) {
	t.Helper()
	c.proxy.Cut()
	select {
	case <-has.Done():
	case <-time.After(10 * short):
		t.Error("nothing is lost by a cut")
	}
	c.proxy.Heal()
}

// Three sessions take a lock, write under it and give it up; one is cut off while it has it. What was
// recorded of the real code is possible in both models.
func TestRecordedLocks(t *testing.T) {
	t.Parallel()
	root, r := zktest.Root(t), newRecorder(t)
	first := connect(t, root)
	s, err := first.Session(t.Context())
	if err == nil {
		err = s.EnsurePath(t.Context(), "/register")
	}
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i, c := range []*client{first, connect(t, root), connect(t, root)} {
		group.Go(func() {
			for round := range 2 {
				s, err := c.Session(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				r.round(i, s, string(rune('a'+3*round+i)), func(held *recipe.Held) {
					if i == 0 && round == 0 {
						c.cutOff(t, held.Context()) // which ends a moment after its session
					}
				})
			}
		})
	}
	group.Wait()
	events := r.all("acquire", "read", "write", "release", "lose")
	judgeLocks(t, model.Complete(events, false), losses(events))
}

// round takes the lock once; trouble happens while it has it.
func (r *recorder) round(i int, s *recipe.Session, value string, trouble func(*recipe.Held)) {
	ctx := context.WithoutCancel(r.t.Context())
	var held *recipe.Held
	err := r.call(i, "acquire", "", never, func() (_ string, err error) {
		held, err = recipe.NewLock(s, "/lock", "").Acquire(ctx)
		return "", err
	})
	if err != nil {
		return
	}
	_ = r.call(i, "read", "", never, func() (string, error) {
		data, _, err := s.Get(ctx, "/register")
		return string(data), err
	})
	_ = r.call(i, "write", value, nil, func() (string, error) {
		_, err := held.Set(ctx, "/register", []byte(value), recipe.AnyVersion)
		return "", err
	})
	trouble(held)
	if held.Lost() != nil {
		r.lost(i)
		return
	}
	_ = r.call(i, "release", "", nil, func() (string, error) { return "", held.Release(ctx) })
}

// judgeLocks has both models judge a history of a lock, and a wrong one made of it.
func judgeLocks(t *testing.T, events []model.Event, faults int) {
	t.Helper()
	wrong := slices.Clone(events)
	at := slices.IndexFunc(wrong, func(e model.Event) bool { return e.Op == "read" && e.Value != "" && e.Result == "ok" })
	if at < 0 {
		t.Fatal("no read has seen a value")
	}
	wrong[at].Value = "" // a write that was lost
	for possible, history := range map[bool][]model.Event{true: events, false: wrong} {
		judge(t, possible, model.Locks, history, func() (bool, error) { return model.LocksPossible(t.Context(), history, faults) })
	}
}
