// Package presence is what the tree tells of a launcher: its record and those of its pools
// among the components, and how long it let us serve.
package presence

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// pauseTime is how long a pool is shown as it is at least.
	pauseTime = time.Second
	// awaitTime is after how long it is told that our own pools do not show.
	awaitTime = time.Minute
)

// Host is where a launcher runs, and what it is.
type Host struct {
	Name    string // short, as records show it
	Version string // of the program
}

// Record is one among the components, there as long as Run runs and there is a session;
// *recipe.Registration is one.
type Record interface {
	Run(ctx context.Context) error
	Set(data []byte)
}

// Self is a launcher as the tree tells of it. Zuul reads ids and labels of its pools;
// other launchers learn from a record that goes that its launcher has died.
type Self struct {
	host      Host
	providers *zkmodel.Strings // nil when some are not known
	process   *zkmodel.Process // which the record of the launcher describes
	knows     zkmodel.Strings
	pools     []*pool.Pool
	record    func(kind string, data []byte) Record
	now       func() time.Time
	log       hclog.Logger

	records map[string]*poolRecord // by the ids of the pools; since Run has begun
}

// poolRecord is the record of a pool of ours.
type poolRecord struct {
	Record
	shown   poolState // the caller's of Show
	failing map[string]zkmodel.Failing
	since   time.Time // from when on it has been so
}

// NewSelf makes a Self of a launcher with some providers (zkmodel.Served), what it
// knows (zkmodel.Component.Knows), a process (nil
// tells nothing), and pools. record makes a record of a kind; Records makes real ones.
func NewSelf(host Host, providers *zkmodel.Strings, knows zkmodel.Strings, process *zkmodel.Process, pools []*pool.Pool, record func(kind string, data []byte) Record, now func() time.Time, log hclog.Logger) *Self {
	return &Self{host: host, providers: providers, knows: knows, process: process, pools: pools, record: record, now: now, log: log, records: map[string]*poolRecord{}}
}

// Records makes records in the tree; that of the launcher is the one that is kept, if any is.
func Records(client *recipe.Client, host Host, kept *Kept) func(kind string, data []byte) Record {
	return func(kind string, data []byte) Record {
		if kind == zkmodel.KindLauncher && kept != nil {
			kept.Set(data)
			return kept
		}
		return recipe.NewRegistration(client, zkmodel.ComponentsRoot+"/"+kind, host.Name, data)
	}
}

// Run has serve run while this launcher is registered, until serve returns. The records
// go then: a launcher that sees them go finds everything free that serve gave up.
func (s *Self) Run(ctx context.Context, serve func(ctx context.Context) error) error {
	list, err := s.all()
	if err != nil {
		return err
	}
	kept, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, kept := errgroup.WithContext(kept)
	for _, r := range list {
		group.Go(func() error { return r.Run(kept) })
	}
	group.Go(func() error { s.process.Follow(kept, func() { list[0].Set(s.launcher()) }); return nil })
	group.Go(func() error {
		defer stop()
		return serve(ctx)
	})
	return group.Wait()
}

// launcher is the record of the launcher itself.
func (s *Self) launcher() []byte {
	self := &zkmodel.Component{
		Hostname: s.host.Name, Kind: zkmodel.KindLauncher,
		State: zkmodel.ComponentRunning, Version: s.host.Version, Providers: s.providers,
	}
	s.process.Describe(self)
	data, _ := self.Encode() // strings and numbers always encode
	return data
}

// all makes all records; the first is that of the launcher itself.
func (s *Self) all() ([]Record, error) {
	list := []Record{s.record(zkmodel.KindLauncher, s.launcher())}
	for _, p := range s.pools {
		data, err := s.component(p, poolState{}).Encode()
		if err != nil {
			return nil, fmt.Errorf("register pool %s: %w", p.Section.Name, err)
		}
		record := s.record(zkmodel.KindPool, data)
		s.records[p.ID] = &poolRecord{Record: record}
		list = append(list, record)
	}
	return list, nil
}

// Show shows in the records of our pools what keeps them from taking requests: others
// wait for room in them, they take none at all, or their provider is broken. Then
// launchers with other pools need not leave them requests. A record changes once in a
// second at most. The time is when to look again. One goroutine calls it, while Run runs.
func (s *Self) Show(decisions []schedule.Decision, cloud func(provider string) supply.View) (again time.Time) {
	full := map[string]bool{}
	for _, d := range decisions {
		if w, waits := d.(schedule.Wait); waits && w.Queued {
			full[w.Pool.ID] = true
		}
	}
	for _, p := range s.pools {
		view := cloud(p.Provider.Name)
		now := poolState{
			paused: full[p.ID] || view.Held || p.Provider.MaxConcurrency == 0,
			broken: view.Broken, trouble: view.Trouble, since: view.TroubleSince, stopped: view.Paused, slow: view.Slow,
		}
		failing, record := view.Failing[p.Section.Name], s.records[p.ID]
		if record.shown == now && maps.Equal(record.failing, failing) {
			continue
		}
		if due := record.since.Add(pauseTime); due.After(s.now()) {
			again = schedule.Earlier(again, due)
			continue
		}
		c := s.component(p, now)
		c.Failing = failing
		data, err := c.Encode()
		if err != nil {
			s.log.Warn("Pool cannot be shown as it is", "pool", p.ID, "error", err)
			continue
		}
		record.shown, record.failing, record.since = now, failing, s.now()
		record.Set(data)
	}
	return again
}

// Components are those that are seen in the tree; *zkmodel.Mirror shows them.
type Components interface {
	Components(kind string) []*zkmodel.Component
}

// Await returns when our own pools are seen: a request fails when all that are registered
// have declined it, so ours must be among them. change waits for a change of the
// components, or for a time; it is false when ctx has ended.
func (s *Self) Await(ctx context.Context, seen Components, change func(ctx context.Context, most time.Duration) bool) error {
	for begun, told := s.now(), s.now(); ; {
		there := map[string]bool{}
		for _, c := range seen.Components(zkmodel.KindPool) {
			there[c.ID] = true
		}
		missing := 0
		for _, p := range s.pools {
			if !there[p.ID] {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if now := s.now(); now.Sub(told) >= awaitTime {
			told = now
			s.log.Warn("Our own pools do not show among the components; no request is served before", "missing", missing, "waited", now.Sub(begun))
		}
		if !change(ctx, awaitTime) {
			return fmt.Errorf("wait for our own %d pools among the components: %w", missing, context.Cause(ctx))
		}
	}
}
