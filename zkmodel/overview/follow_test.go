package overview_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/test/largesite"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What no mirror has is read once a page asks, and told when it changes. Mistakes: reads for pages that nobody has
// opened; znodes that pages make; a wave that shows as it was when the first page was loaded; a version of the
// configuration that cannot be read, and hides who runs what.
func TestFollower(t *testing.T) {
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t), Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	client.SetObserver(func(bool, time.Duration) { requests.Add(1) })
	f := overview.NewFollower(client, hclog.NewNullLogger())
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	if _, there, err := session.Exists(t.Context(), zkmodel.OwnRoot); err != nil || there {
		t.Fatal(there, err)
	}
	if n := requests.Load(); n != 1 { // our own
		t.Errorf("%d requests before anybody asked", n)
	}
	var empty *overview.Beside
	zktest.Eventually(t, func() bool { empty = f.Look(); return empty != nil }, "a site without waves is read")
	if len(empty.Waves)+len(empty.Members)+len(empty.Limits)+len(empty.Sinks)+len(empty.Unread) > 0 || empty.Current != nil {
		t.Errorf("a site without anything has %+v", empty)
	}
	if _, there, err := session.Exists(t.Context(), zkmodel.OwnRoot); err != nil || there {
		t.Errorf("a page has made %s (%v)", zkmodel.OwnRoot, err)
	}
	var told atomic.Int64
	running.Go(func() { f.Watch(ctx, func() { told.Add(1) }) })
	site := largesite.New(largesite.Overview, time.Now())
	for at, record := range site.Records {
		if slices.ContainsFunc([]string{wave.Root, fleet.MembersPath, fleet.CurrentPath, zkmodel.LimitsRoot}, func(root string) bool { return len(at) >= len(root) && at[:len(root)] == root }) {
			if err := largesite.Put(t.Context(), session, at, record); err != nil {
				t.Fatal(err)
			}
		}
	}
	zktest.Eventually(t, func() bool {
		b := f.Look()
		return told.Load() > 0 && len(b.Waves) == 2 && len(b.Members) == 4 && len(b.Limits) == 5 && b.Current != nil && b.Current.Number == 8
	}, "waves, daemons, limits and the version are there")
	before := told.Load()
	if err := largesite.Put(t.Context(), session, wave.HoldPath, `{"by": "ann", "reason": "mirror is down"}`); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { held := f.Look().Held; return held != nil && held.By == "ann" && told.Load() > before }, "all waves are held")
	if err := largesite.Put(t.Context(), session, fleet.CurrentPath, `{"number": "eight"}`); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { b := f.Look(); return b.Unversioned != nil && len(b.Members) == 4 && b.Current == nil }, "a version that cannot be read")
}

// Mistake: an open page learns a minute later that what it shows is old, as the daemon has no session.
func TestFollowerTellsOfSessions(t *testing.T) {
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: zktest.Root(t), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := client.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var told atomic.Int64
	var running sync.WaitGroup
	running.Go(func() { overview.NewFollower(client, hclog.NewNullLogger()).WatchSession(ctx, func() { told.Add(1) }) })
	t.Cleanup(func() { stop(); running.Wait() })
	proxy.Cut()
	zktest.Eventually(t, func() bool { return told.Load() == 1 }, "the session has ended")
	proxy.Heal()
	zktest.Eventually(t, func() bool { return told.Load() == 2 }, "there is another")
}
