package presence

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// record is one that only remembers what it was told.
type record struct {
	kind string

	mu    sync.Mutex
	data  []byte
	set   int // how often it was changed
	there bool
}

func (r *record) Set(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = data
	r.set++
}

func (r *record) Run(ctx context.Context) error {
	r.is(true)
	defer r.is(false)
	<-ctx.Done()
	return nil
}

func (r *record) is(there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.there = there
}

func (r *record) seen() (there bool, set int, c *zkmodel.Component) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.there, r.set, zkmodel.DecodeComponent("host-0000000001", r.data)
}

// setup is a launcher with a pool in each of two providers, whose label lost is left out of
// the configuration.
func setup(t *testing.T, now func() time.Time) (*Self, []*pool.Pool, *[]*record, *bytes.Buffer) {
	t.Helper()
	var pools []*pool.Pool
	for _, name := range []string{"north", "south"} {
		p := pool.New("host", configs.Provider{Name: name, MaxConcurrency: -1}, configs.Pool{
			Name: "main", Labels: []configs.PoolLabel{{Name: "small"}, {Name: "lost"}},
		})
		p.Frozen = map[string]string{"lost": "its image is wrong"}
		pools = append(pools, p)
	}
	records := &[]*record{}
	said := &bytes.Buffer{}
	self := NewSelf(Host{Name: "host", Version: "1.2"}, zkmodel.Served([]string{"north", "south"}, true), zkmodel.Strings{zkmodel.KnowsVerdicts, zkmodel.KnowsValidation}, nil, pools,
		func(kind string, data []byte) Record {
			r := &record{kind: kind, data: data}
			*records = append(*records, r)
			return r
		}, now, hclog.New(&hclog.LoggerOptions{Output: said}))
	return self, pools, records, said
}

// fine is a cloud that nothing is wrong with.
func fine(string) supply.View { return supply.View{} }

// The records are there while the launcher serves, and go when that is over and not
// before: a launcher that sees them go takes over what the launcher had, which must be free then.
func TestRecordsAreThereWhileItServes(t *testing.T) {
	self, pools, records, _ := setup(t, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	serve := func(ctx context.Context) error {
		for _, r := range *records {
			for there := false; !there; there, _, _ = r.seen() {
				<-time.After(time.Millisecond)
			}
		}
		cancel()
		<-ctx.Done()
		for i, r := range *records { // our locks are being given up
			if there, _, _ := r.seen(); !there {
				t.Errorf("record %d has gone while something is in our hands", i)
			}
		}
		return context.Cause(ctx)
	}
	if err := self.Run(ctx, serve); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if len(*records) != 1+len(pools) {
		t.Fatalf("%d records, want one and one for each of %d pools", len(*records), len(pools))
	}
	for i, r := range *records {
		there, _, c := r.seen()
		if there {
			t.Errorf("record %d is left", i)
		}
		if i == 0 && (r.kind != zkmodel.KindLauncher || c.Version != "1.2" || c.Providers == nil || len(*c.Providers) != 2) {
			t.Errorf("the launcher tells %+v (%s)", c, r.kind)
		}
		if i > 0 && (r.kind != zkmodel.KindPool || c.ID != pools[i-1].ID || c.ProviderName != pools[i-1].Provider.Name) {
			t.Errorf("pool %d tells %+v (%s)", i, c, r.kind)
		}
	}
}

// Each pool tells of itself alone: paused while requests wait for room in it or nothing
// can be launched, with labels only while they can be had. A pool that is shown with the
// state of its neighbour has its requests declined, or waits for a launcher that never
// takes them.
func TestPoolsAreShownAsTheyAre(t *testing.T) {
	now := time.Now()
	self, pools, records, _ := setup(t, func() time.Time { return now })
	if _, err := self.all(); err != nil {
		t.Fatal(err)
	}
	north, south := (*records)[1], (*records)[2]
	is := func(r *record, paused bool, labels, troubled zkmodel.Strings, trouble string) {
		t.Helper()
		_, _, c := r.seen()
		if c.Paused == nil || *c.Paused != paused || c.Trouble != trouble {
			t.Errorf("paused: %v, trouble %q; want %t, %q", c.Paused, c.Trouble, paused, trouble)
		}
		if diff := cmp.Diff(labels, c.SupportedLabels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(troubled, c.TroubledLabels); diff != "" {
			t.Errorf("troubled labels (-want +got):\n%s", diff)
		}
	}
	small, none := zkmodel.Strings{"small"}, zkmodel.Strings{}
	is(north, false, small, nil, "")

	full := []schedule.Decision{
		schedule.Wait{Queued: true, Pool: &schedule.Pool{ID: pools[0].ID}},
		schedule.Wait{Pool: &schedule.Pool{ID: pools[1].ID}}, // waits, but not for room
	}
	self.Show(full, fine)
	is(north, true, small, nil, "")
	is(south, false, small, nil, "")

	now = now.Add(pauseTime)
	self.Show(nil, func(provider string) supply.View {
		return supply.View{Broken: provider == "south", Held: provider == "south", Trouble: map[string]string{"south": "no password"}[provider]}
	})
	is(north, false, small, nil, "")
	is(south, true, none, small, "no password")
	now = now.Add(pauseTime)
	self.Show(nil, fine)
	is(south, false, small, nil, "")
}

// A record changes once in a second at most, and what it should say then is not lost:
// Show names the time at which it is to be called again.
func TestPoolsAreShownOnceInASecond(t *testing.T) {
	now := time.Now()
	self, pools, records, _ := setup(t, func() time.Time { return now })
	if _, err := self.all(); err != nil {
		t.Fatal(err)
	}
	full := []schedule.Decision{schedule.Wait{Queued: true, Pool: &schedule.Pool{ID: pools[0].ID}}}
	if again := self.Show(full, fine); !again.IsZero() {
		t.Errorf("to be shown again at %s, although it is as it should be", again)
	}
	now = now.Add(pauseTime / 2)
	again := self.Show(nil, fine)
	if want := now.Add(pauseTime / 2); !again.Equal(want) {
		t.Errorf("to be shown again at %s, want %s", again, want)
	}
	if _, set, _ := (*records)[1].seen(); set != 1 {
		t.Errorf("changed %d times within a second", set)
	}
	now = again
	self.Show(nil, fine)
	if _, set, c := (*records)[1].seen(); set != 2 || *c.Paused {
		t.Errorf("changed %d times, paused: %t", set, *c.Paused)
	}
	if _, set, _ := (*records)[2].seen(); set != 0 {
		t.Error("the other pool's record was written without a change")
	}
}

// components are those that are seen.
type components []*zkmodel.Component

func (c components) Components(string) []*zkmodel.Component { return c }

// No request is served before every pool of ours is seen; while one is missing that is
// said once a minute. Served earlier, a request would fail that our own pool could serve.
func TestOwnPoolsAreAwaited(t *testing.T) {
	now := time.Now()
	self, pools, _, said := setup(t, func() time.Time { return now })
	seen := components{{ID: "other"}, {ID: pools[1].ID}}
	changes := 0
	err := self.Await(t.Context(), &seen, func(context.Context, time.Duration) bool {
		if changes++; changes == 4 {
			seen = append(seen, &zkmodel.Component{ID: pools[0].ID})
		}
		now = now.Add(awaitTime / 2)
		return true
	})
	if err != nil || changes != 4 {
		t.Errorf("returned after %d changes: %v", changes, err)
	}
	if got := strings.Count(said.String(), "do not show among the components"); got != 1 {
		t.Errorf("said %d times in a minute and a half:\n%s", got, said)
	}
	ended := errors.New("session lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	err = self.Await(ctx, components{}, func(context.Context, time.Duration) bool { return false })
	if !errors.Is(err, ended) {
		t.Errorf("the session ended: %v", err)
	}
}
