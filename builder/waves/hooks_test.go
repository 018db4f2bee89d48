package waves_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// hooked makes a site with two hooks and three images.
func hooked(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "debian-12", "debian-13", "fedora")
	s.config.Hooks = []configs.Hook{
		{Wave: configs.Wave{Name: "elements", Match: []string{"debian-*"}, Reason: "new elements", Order: "freshness", Until: "uploaded", MaxFailures: "20%"}},
		{Wave: configs.Wave{Name: "none", Match: []string{"suse*"}, Order: "freshness", Until: "uploaded", MaxFailures: "20%"}},
	}
	return s
}

// told is what a hook was told.
func (s *site) told(hookName, id string) {
	s.t.Helper()
	d := &hook.Delivery{Hook: hookName, ID: id, Event: "push", Ref: "refs/heads/main", Repository: "acme/elements", Received: time.Now()}
	if fresh, err := hook.NewStore(s.models.Session()).Keep(s.t.Context(), d); err != nil || !fresh {
		s.t.Fatalf("keep %s: %t, %v", id, fresh, err)
	}
}

// waves are all that there are.
func (s *site) waves() []*wave.Entry {
	s.t.Helper()
	list, err := s.store.Waves(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// queued counts the deliveries that wait.
func (s *site) queued() int {
	s.t.Helper()
	list, err := hook.NewStore(s.models.Session()).Waiting(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list)
}

// Mistakes: two builders that make a wave each of a delivery; one that is known and makes
// another; a hook without images, or that is not configured, which stops those behind it; a
// delivery that waits for ever.
func TestWavesOfHooks(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	s.driver("one", nil)
	s.driver("two", nil)
	s.builder("x")
	ctx := t.Context()
	s.eventually("one of them answers hooks", func() bool { return s.holders(hook.LockPath) == 1 })
	s.told("gone", "1")
	s.told("none", "2")
	s.told("elements", "3")
	s.eventually("a wave is made", func() bool { return len(s.waves()) == 1 })
	w := s.waves()[0]
	if !strings.HasPrefix(w.ID, "elements-") || w.By != "hook elements" || w.Reason != "new elements: push to main of acme/elements" || w.Jobs != 2 {
		t.Errorf("wave %+v", w.Wave)
	}
	store := hook.NewStore(s.models.Session())
	if o, known, err := store.Outcome(ctx, "elements", "3"); err != nil || !known || o.Wave != w.ID {
		t.Errorf("%+v %t %v", o, known, err)
	}
	if o, _, err := store.Outcome(ctx, "none", "2"); err != nil || !strings.Contains(o.Reason, "suse") {
		t.Errorf("%+v %v", o, err)
	}
	if fresh, err := store.Keep(ctx, &hook.Delivery{Hook: "elements", ID: "3"}); err != nil || fresh {
		t.Errorf("known: %t, %v", fresh, err)
	}
	s.result(w.ID)
	if n := s.queued(); n != 1 {
		t.Errorf("%d wait, want that of a hook that is not configured", n)
	}
	if n := s.holders(hook.LockPath); n != 1 {
		t.Errorf("%d builders answer hooks", n)
	}
	s.later(8 * 24 * time.Hour)
	s.eventually("what waits for nothing goes", func() bool { return s.queued() == 0 })
}

// Mistakes: deliveries in the order in which they came, whatever their priorities; one of the name PRIORITY-SEQUENCE that is dropped.
func TestDeliveriesByPriority(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	ctx, session := t.Context(), s.models.Session()
	store := hook.NewStore(session)
	at := time.Now().UTC().Truncate(time.Second)
	keep := func(id string, priority int) {
		d := &hook.Delivery{Hook: "elements", ID: id, Event: "push", Received: at, Priority: priority}
		if fresh, err := store.Keep(ctx, d); err != nil || !fresh {
			t.Fatalf("keep %s: %t, %v", id, fresh, err)
		}
	}
	keep("low", hook.PriorityLow)
	keep("plain", 0)
	keep("normal", hook.PriorityNormal)
	later := `{"hook": "elements", "id": "later", "event": "push", "received": "` + at.Format(time.RFC3339) + `"}`
	if _, err := session.Create(ctx, hook.QueuePath+"/100-0000000007", []byte(later), recipe.Persistent); err != nil {
		t.Fatal(err)
	}
	keep("high", hook.PriorityHigh)
	waiting, err := store.Waiting(ctx)
	var ids []string
	for _, d := range waiting {
		ids = append(ids, d.ID)
	}
	if err != nil || strings.Join(ids, " ") != "later high plain normal low" {
		t.Errorf("%q wait, %v", ids, err)
	}
	names, err := session.Children(ctx, hook.QueuePath)
	if err != nil || !slices.Contains(names, "elements,high") {
		t.Errorf("names in the queue, which builders of older releases read: %q, %v", names, err)
	}
	s.driver("one", nil)
	s.builder("x")
	s.eventually("each makes its wave", func() bool { return len(s.waves()) == 5 && s.queued() == 0 })
}

// Mistake: a delivery that cannot be read, or taken out of the queue, and keeps those behind it
// waiting.
func TestOneDeliveryKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	s.told("elements", "1")
	s.told("elements", "2")
	s.told("elements", "3")
	addr := zktest.Shared(t).Addr()
	unread := zktest.Forbid(t, addr, s.root, hook.QueuePath+"/elements,1")
	stays := zktest.Protect(t, addr, s.root, hook.Root+"/seen/elements/2")
	s.driver("one", nil)
	s.eventually("the third makes a wave", func() bool { return len(s.waves()) == 1 })
	unread()
	stays()
	s.later(0)
	s.eventually("so do the others", func() bool { return len(s.waves()) == 3 && s.queued() == 0 })
}

// Mistakes: a znode that is no delivery, or a hook whose wave is too large for a transaction,
// which are tried for ever.
func TestDeliveriesThatCannotBeServedGo(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	for i := range 900 { // a few long names are as large as many short ones, and quicker; these hardly get smaller by compression
		name := fmt.Sprintf("big-%05d-%s", i, kit.RandomHex(1500))
		s.config.DiskImages = append(s.config.DiskImages, configs.DiskImage{Name: name, RebuildTimezone: "UTC"})
		for p := range s.config.Providers {
			s.config.Providers[p].DiskImages = append(s.config.Providers[p].DiskImages, configs.ProviderImage{Name: name})
		}
	}
	s.config.Hooks = append(s.config.Hooks, configs.Hook{Wave: configs.Wave{Name: "all", All: true, Order: "priority", Until: "uploaded", MaxFailures: "20%"}})
	ctx, ses := t.Context(), s.models.Session()
	s.told("all", "1")
	for _, name := range []string{"junk", ",1", "elements,", "elements,a,b"} {
		if _, err := ses.Create(ctx, hook.QueuePath+"/"+name, []byte(`{"received":"2026-01-01T00:00:00Z"}`), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	s.told("elements", "2")
	s.driver("one", nil)
	s.eventually("nothing waits, and the last makes a wave", func() bool { return s.queued() == 0 && len(s.waves()) == 1 })
	if o, known, err := hook.NewStore(ses).Outcome(ctx, "all", "1"); err != nil || !known || !strings.Contains(o.Reason, "larger") {
		t.Errorf("%+v %t %v", o, known, err)
	}
}

// Mistake: a delivery that is lost or makes two waves, whichever request of a builder is
// its last. The next builder goes on.
func TestHooksKilledAfterAnyRequest(t *testing.T) {
	t.Parallel()
	for requests := 5; requests < 75; requests += 3 {
		t.Run(strconv.Itoa(requests), func(t *testing.T) {
			t.Parallel()
			hookKilledAfter(t, requests)
		})
	}
}

// hookKilledAfter kills a builder that makes waves of two deliveries.
func hookKilledAfter(t *testing.T, requests int) {
	t.Helper()
	s := hooked(t)
	s.told("elements", "1")
	s.told("elements", "2")
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), requests)
	s.tap = tap
	stop := s.driver("first", nil)
	s.eventually("the first is killed, or all is done", func() bool { return tap.Ended() || s.queued() == 0 })
	t.Logf("killed before all was done: %t", tap.Ended())
	stop()
	s.driver("second", nil)
	s.eventually("all is done", func() bool { return s.queued() == 0 })
	if list := s.waves(); len(list) != 2 || list[0].ID == list[1].ID {
		t.Errorf("killed after %d requests: %d waves", requests, len(list))
	}
}

// Mistake: a daemon that answers 202 before the delivery stands in the tree, or that is
// killed and told again, and makes two of one.
func TestDeliveriesAreKeptOnceOverDeaths(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	for requests := 1; ; requests++ {
		if requests > 50 {
			t.Fatal("a delivery is never taken")
		}
		id := strconv.Itoa(requests)
		tap := zktest.StartTap(t, zktest.Shared(t).Addr(), requests)
		client := s.dialAt(tap.Addr(), 2*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := hook.NewDesk(client, "builder x").Keep(ctx, &hook.Delivery{Hook: "elements", ID: id})
			answer <- err
		}()
		var err error
		s.eventually("it is answered, or the daemon is killed", func() bool {
			select {
			case err = <-answer:
				return true
			default:
				if tap.Ended() {
					cancel()
				}
				return false
			}
		})
		cancel()
		client.Close()
		before := s.queued()
		if err == nil && before != requests {
			t.Fatalf("%d wait after %d requests, and it was said to be stored", before, requests)
		}
		_, again := hook.NewDesk(s.dial(), "launcher y").Keep(t.Context(), &hook.Delivery{Hook: "elements", ID: id})
		if again != nil || s.queued() != requests {
			t.Fatalf("%d wait after %d: %v", s.queued(), requests, again)
		}
		if err == nil && !tap.Ended() {
			return
		}
	}
}

// Mistakes: a queue or a memory without bounds; a full one that takes what is known for new.
func TestHooksAreBounded(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	ctx := t.Context()
	store := hook.NewStore(s.models.Session())
	s.told("elements", "first")
	var ops []recipe.Op
	for i := range hook.Most - 1 {
		ops = append(ops, recipe.OpCreate(fmt.Sprintf("%s/elements,%d", hook.QueuePath, i), nil, recipe.Persistent))
	}
	if _, err := s.models.Session().Multi(ctx, ops...); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Keep(ctx, &hook.Delivery{Hook: "elements", ID: "more"}); !errors.Is(err, hook.ErrFull) {
		t.Errorf("a full queue: %v", err)
	}
	if fresh, err := store.Keep(ctx, &hook.Delivery{Hook: "elements", ID: "first"}); fresh || err != nil {
		t.Errorf("known, in a full queue: %t, %v", fresh, err)
	}
	held, err := recipe.NewLock(s.models.Session(), hook.LockPath, "test", recipe.EnsureParents()).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Forget(ctx, held, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, known, err := store.Outcome(ctx, "elements", "first"); !known || err != nil {
		t.Errorf("forgotten at once: %v", err)
	}
	if err := store.Forget(ctx, held, time.Now().Add(hook.Memory+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, known, err := store.Outcome(ctx, "elements", "first"); known || err != nil {
		t.Errorf("known for ever: %v", err)
	}
	if err := held.Release(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	s.driver("one", nil) // none of them can be decoded, but the first
	s.eventually("the queue is empty", func() bool { return s.queued() == 0 })
	if list := s.waves(); len(list) != 1 {
		t.Errorf("%d waves", len(list))
	}
}

// Mistake: deliveries that stay for ever where no builder has hooks any more.
func TestDeliveriesWithoutHooksGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "debian-12")
	s.told("elements", "1")
	s.told("elements", "2")
	s.driver("one", nil)
	s.driver("two", nil)
	s.later(6 * 24 * time.Hour)
	store := hook.NewStore(s.models.Session())
	if s.told("elements", "3"); s.queued() != 3 {
		t.Errorf("%d wait", s.queued())
	}
	s.later(2 * 24 * time.Hour)
	s.eventually("what waits for nothing goes", func() bool { return s.queued() == 0 })
	s.eventually("it is forgotten", func() bool { // which comes after that
		_, known, err := store.Outcome(t.Context(), "elements", "1")
		return err == nil && !known
	})
}

// Mistakes: a queue that comes into being while builders without hooks run, and that none of
// them sees; a lock that each of them takes again and again though nothing waits.
func TestDeliveriesComeLaterWithoutHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, "debian-12")
	ctx, session := t.Context(), s.models.Session()
	store := hook.NewStore(session)
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	s.tap = tap
	s.driver("one", nil)
	s.driver("two", nil)
	s.eventually("one waits for a queue", func() bool { return tap.Naming(hook.QueuePath) >= 2 })
	for _, id := range []string{"1", "2"} {
		old := &hook.Delivery{Hook: "elements", ID: id, Received: time.Now().Add(-hook.Memory - time.Hour)}
		if _, err := store.Keep(ctx, old); err != nil {
			t.Fatal(err)
		}
		if id == "1" {
			s.eventually("what waits for nothing goes", func() bool { return s.queued() == 0 })
		}
	}
	if err := session.Delete(ctx, hook.QueuePath+"/elements,2", recipe.AnyVersion); err != nil && !errors.Is(err, recipe.ErrNoNode) {
		t.Fatal(err)
	}
	if err := session.DeleteTree(ctx, hook.LockPath); err != nil {
		t.Fatal(err)
	}
	tap = zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	s.tap = tap
	s.driver("three", nil)
	s.eventually("what is known is looked at", func() bool { return tap.Naming(hook.Root+"/seen/elements/2") > 0 })
	if n := tap.Naming(hook.LockPath); n != 1 {
		t.Errorf("%d requests about the lock, want the look whether another has it", n)
	}
	s.later(hook.Memory + time.Hour)
	s.eventually("it is forgotten", func() bool {
		_, known, err := store.Outcome(ctx, "elements", "2")
		return err == nil && !known
	})
}
