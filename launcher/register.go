package launcher

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// registrations are the records of this launcher and its pools among the
// components. Zuul reads ids and labels of the pools; other launchers learn from
// a record that goes that its launcher has died.
func (l *Launcher) registrations() ([]*recipe.Registration, error) {
	records := []*zkmodel.Component{{
		Hostname: l.deps.Hostname, Kind: zkmodel.KindLauncher,
		State: zkmodel.ComponentRunning, Version: l.deps.Version,
	}}
	for _, p := range l.pools {
		records = append(records, p.component(l.deps.Hostname, l.deps.Version))
	}
	var list []*recipe.Registration
	for _, c := range records {
		data, err := c.Encode()
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", c.Kind, err)
		}
		dir := zkmodel.ComponentsRoot + "/" + c.Kind
		list = append(list, recipe.NewRegistration(l.deps.Client, dir, c.Hostname, data))
	}
	return list, nil
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
func (s *shift) awaitRegistered(ctx context.Context, f *follower) error {
	for {
		f.take()
		seen := map[string]bool{}
		for _, c := range s.mirror.Components(zkmodel.KindPool) {
			seen[c.ID] = true
		}
		missing := 0
		for _, p := range s.pools {
			if !seen[p.id] {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if !f.wait(ctx, nil, time.Minute) {
			return fmt.Errorf("wait for our own %d pools among the components: %w", missing, context.Cause(ctx))
		}
	}
}

// parting is the context of what is done when ctx has ended: short, and over
// with the session.
func (s *shift) parting(ctx context.Context) (context.Context, context.CancelFunc) {
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	bound, unbind := s.store.Session().Bind(short)
	return bound, func() { unbind(); cancel() }
}
