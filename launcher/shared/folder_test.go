package shared

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tree is a tree of the test's own.
func tree(t *testing.T) (*recipe.Client, *zkmodel.Store) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client, zkmodel.NewStore(session, nil)
}

// running runs something until the test ends.
func running(t *testing.T, run func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

// limited is a cloud that is told its limits.
type limited struct{ told atomic.Int64 }

func (l *limited) Limit(limits providers.Resources) { l.told.Store(int64(limits[providers.Instances])) }

// Each cloud is told its own limits, those that were there before and each change; limits
// that cannot be decoded leave the old ones, where no limit at all would fill a cloud.
func TestLimitsAreHandedOn(t *testing.T) {
	client, store := tree(t)
	save := func(provider, data string) {
		t.Helper()
		if err := store.SaveLimits(t.Context(), provider, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	save("north", `{"instances": 3}`)
	l := NewLimits(client, hclog.NewNullLogger())
	north, south := &limited{}, &limited{}
	running(t, func(ctx context.Context) error {
		return l.Run(ctx, map[string]Limited{"north": north, "south": south})
	})
	zktest.Eventually(t, func() bool { return north.told.Load() == 3 && south.told.Load() == 0 }, "north is told what was there")
	save("north", `[`)
	save("south", `{"instances": 5}`)
	zktest.Eventually(t, func() bool { return south.told.Load() == 5 }, "south is told what was written")
	if told := north.told.Load(); told != 3 {
		t.Errorf("north was told %d by a record that cannot be decoded", told)
	}
}

// What another launcher learned is heard of, and told to the cloud that it is of.
func TestRefusalsAreRead(t *testing.T) {
	client, store := tree(t)
	r := NewRefusals(client, hclog.NewNullLogger())
	heard := make(chan struct{}, 100)
	running(t, func(ctx context.Context) error { return r.Run(ctx, func() { heard <- struct{}{} }) })
	if err := r.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-heard // at first
	teach := &Teacher{Records: store, Nodes: func() []*zkmodel.Node { return nil }, Now: time.Now, Log: hclog.NewNullLogger()}
	teach.Refused(t.Context(), north(), lesson.Asked{}, &zkmodel.Node{ID: "1", Provider: "north"}, false, errFull)
	<-heard
	other := north()
	zktest.Eventually(t, func() bool { r.Tell("north", other); return other.Lessons().Lesson.Failures == 1 }, "another launcher knows of the refusal")
	unknown := north()
	if r.Tell("south", unknown); unknown.Lessons().Lesson.Failures != 0 {
		t.Error("a cloud was told what another one taught")
	}
}

// Offers are known by their paths, with the time in which a pool left; a record that
// cannot be decoded is no offer. A new record is never without its data.
func TestOffersAreKnown(t *testing.T) {
	client, store := tree(t)
	o := NewOffers(client, hclog.NewNullLogger())
	running(t, func(ctx context.Context) error { return o.Run(ctx, func() {}) })
	main, spare := zkmodel.Offer{Hostname: "one", Provider: "north", Pool: "main", Labels: zkmodel.Strings{"small"}}, zkmodel.Offer{Hostname: "one", Provider: "north", Pool: "spare", Left: true}
	if err := errors.Join(store.SaveOffer(t.Context(), main), store.SaveOffer(t.Context(), spare)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Session().Create(t.Context(), zkmodel.OffersRoot+"/broken", []byte("["), 0); err != nil {
		t.Fatal(err)
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	known := o.Known()
	if got := known[main.Path()]; len(known) != 2 || !got.Same(main) || got.Stat.Mtime.IsZero() {
		t.Errorf("known: %+v", known)
	}
	if got := known[spare.Path()]; !got.Left || got.Stat.Version != 0 {
		t.Errorf("spare: %+v, want it as it was made", got)
	}
	spare.Left = false
	if err := errors.Join(store.SaveOffer(t.Context(), spare), o.Barrier(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := o.Known()[spare.Path()]; !got.Same(spare) {
		t.Errorf("spare, back again: %+v", got)
	}
}

// measurer is ZooKeeper with a clock of its own.
type measurer struct {
	ahead time.Duration
	err   error
}

func (m measurer) Ahead(context.Context) (time.Duration, error) { return m.ahead, m.err }

// A host that is off far enough says so, in either direction; a reading that failed
// leaves the last one, where 0 would have this host delete by a clock that is wrong.
func TestClockIsRead(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		warns bool
	}{{time.Second, false}, {-time.Second, false}, {2 * time.Minute, true}, {-2 * time.Minute, true}} {
		var said bytes.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &said})
		var clock Clock
		if err := clock.Read(t.Context(), measurer{ahead: c.ahead}, log); err != nil || clock.Ahead() != c.ahead {
			t.Errorf("%s: read %s (%v)", c.ahead, clock.Ahead(), err)
		}
		if warned := strings.Contains(said.String(), "Clock of this host is wrong"); warned != c.warns {
			t.Errorf("%s: warned %t", c.ahead, warned)
		}
		failed := errors.New("no connection")
		if err := clock.Read(t.Context(), measurer{err: failed}, log); !errors.Is(err, failed) || clock.Ahead() != c.ahead {
			t.Errorf("%s: after a failure %s (%v)", c.ahead, clock.Ahead(), err)
		}
	}
}
