package launcher

import (
	"context"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
)

// reapDue starts a job for every node that needs one.
func (s *session) reapDue(ctx context.Context, snap *schedule.Snapshot) time.Time {
	r := s.rules()
	r.Lag, r.Frozen = max(snap.Lag, reap.Behind(snap)), snap.Frozen
	list, again := reap.Due(snap, s.duties, s.own.Mine, r)
	for _, c := range list {
		s.jobs.Start(inflight.Node(c.Node.ID), func() error { return s.reap(ctx, c) })
	}
	return again
}

// rules are those of this launcher's configuration.
func (s *session) rules() reap.Rules {
	r := reap.Rules{Ages: agesOf(s.cfg), Served: map[string]bool{}, Disabled: map[schedule.PoolKey]bool{}, Stocked: map[schedule.PoolKey][]string{}}
	for name, c := range s.clouds {
		_, err := c.Use()
		r.Served[name] = err == nil // it wakes us once it is open
	}
	stock := s.stocked()
	for _, p := range s.pools {
		key := schedule.PoolKey{Provider: p.Provider.Name, Pool: p.Section.Name}
		if p.Section.MaxServers == 0 {
			r.Disabled[key] = true
			continue
		}
		for _, label := range stock {
			if _, has := p.Labels[label.Name]; has {
				r.Stocked[key] = append(r.Stocked[key], label.Name)
			}
		}
	}
	return r
}

func agesOf(cfg *configs.Config) reap.Ages {
	a := reap.Ages{Hold: cfg.MaxHoldAge, Ready: map[string]time.Duration{}}
	for _, l := range cfg.Labels {
		a.Ready[l.Name] = l.MaxReadyAge
	}
	return a
}
