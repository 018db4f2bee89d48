package launcher

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// pauseTime is how long a pool is shown as it is at least.
const pauseTime = time.Second

// poolRecord is the record of a pool of ours among the components.
type poolRecord struct {
	*recipe.Registration
	shown poolState // the looking goroutine's
	since time.Time // from when on it has been so
}

// poolState is what the record of a pool says of the moment.
type poolState struct {
	paused bool // launchers with other pools need not leave it requests
	broken bool // it offers no labels: its provider was never of use yet
	// trouble is why its provider cannot be used, "" when it can.
	trouble string
}

// component is the pool as it tells of itself; Zuul reads its id and labels.
func component(p *pool.Pool, hostname, version string, state poolState) *zkmodel.Component {
	c := &zkmodel.Component{
		Hostname: hostname, ID: p.ID, Kind: zkmodel.KindPool, PoolName: p.Section.Name, Paused: &state.paused,
		Priority: p.Priority(), ProviderName: p.Provider.Name, State: zkmodel.ComponentRunning, Version: version,
		SupportedLabels: zkmodel.Strings{}, Trouble: zkmodel.BriefTrouble(state.trouble),
	}
	labels := &c.SupportedLabels
	if state.broken {
		labels = &c.TroubledLabels
	}
	for _, l := range supply.Labels(p.Section) {
		if p.Frozen[l.Name] == "" {
			*labels = append(*labels, l.Name)
		}
	}
	return c
}

// registrations are the records of this launcher and its pools among the
// components. Zuul reads ids and labels of the pools; other launchers learn from
// a record that goes that its launcher has died.
func (l *Launcher) registrations() ([]*recipe.Registration, error) {
	self := &zkmodel.Component{
		Hostname: l.deps.Hostname, Kind: zkmodel.KindLauncher,
		State: zkmodel.ComponentRunning, Version: l.deps.Version, Providers: zkmodel.Served(l.cfg.ProviderNames()),
	}
	data, err := self.Encode()
	if err != nil {
		return nil, fmt.Errorf("register launcher: %w", err)
	}
	list := []*recipe.Registration{l.registration(zkmodel.KindLauncher, data)}
	for _, p := range l.pools {
		if data, err = component(p, l.deps.Hostname, l.deps.Version, poolState{}).Encode(); err != nil {
			return nil, fmt.Errorf("register pool %s: %w", p.Section.Name, err)
		}
		record := l.registration(zkmodel.KindPool, data)
		l.records[p.ID] = &poolRecord{Registration: record}
		list = append(list, record)
	}
	return list, nil
}

func (l *Launcher) registration(kind string, data []byte) *recipe.Registration {
	return recipe.NewRegistration(l.deps.Client, zkmodel.ComponentsRoot+"/"+kind, l.deps.Hostname, data)
}

// showPools shows in the records of our pools what keeps them from taking requests:
// others wait for room in them, they take none at all, or their provider is broken.
// Then launchers with other pools need not leave them requests. A record changes
// once in pauseTime at most. The time is when to look again.
func (s *session) showPools(decisions []schedule.Decision) (again time.Time) {
	full := map[string]bool{}
	for _, d := range decisions {
		if w, waits := d.(schedule.Wait); waits && w.Queued {
			full[w.Pool.ID] = true
		}
	}
	for _, p := range s.pools {
		cloud := s.clouds[p.Provider.Name].View()
		now := poolState{
			paused: full[p.ID] || cloud.Held || p.Provider.MaxConcurrency == 0,
			broken: cloud.Broken, trouble: cloud.Trouble,
		}
		record := s.records[p.ID]
		if record.shown == now {
			continue
		}
		if due := record.since.Add(pauseTime); due.After(s.now()) {
			again = schedule.Earlier(again, due)
			continue
		}
		data, err := component(p, s.deps.Hostname, s.deps.Version, now).Encode()
		if err != nil {
			s.log.Warn("Pool cannot be shown as it is", "pool", p.ID, "error", err)
			continue
		}
		record.shown, record.since = now, s.now()
		record.Set(data)
	}
	return again
}

// serveRegistered serves session after session while this launcher is registered.
// The records go when the last session's work has ended and its locks are given
// up: whoever sees them go finds everything free.
func (l *Launcher) serveRegistered(ctx context.Context) error {
	list, err := l.registrations()
	if err != nil {
		return err
	}
	kept, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, kept := errgroup.WithContext(kept)
	for _, r := range list {
		group.Go(func() error { return r.Run(kept) })
	}
	group.Go(func() error {
		defer stop()
		return l.deps.Client.Serve(ctx, l.serve)
	})
	return group.Wait()
}

// awaitRegistered returns when the mirror shows our own pools: a request fails
// when all that are registered have declined it, so ours must be among them.
func (s *session) awaitRegistered(ctx context.Context, f *follower) error {
	for begun, told := s.now(), s.now(); ; {
		f.take()
		seen := map[string]bool{}
		for _, c := range s.mirror.Components(zkmodel.KindPool) {
			seen[c.ID] = true
		}
		missing := 0
		for _, p := range s.pools {
			if !seen[p.ID] {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if now := s.now(); now.Sub(told) >= time.Minute {
			told = now
			s.log.Warn("Our own pools do not show among the components; no request is served before", "missing", missing, "waited", now.Sub(begun))
		}
		if !f.wait(ctx, nil, time.Minute) {
			return fmt.Errorf("wait for our own %d pools among the components: %w", missing, context.Cause(ctx))
		}
	}
}
