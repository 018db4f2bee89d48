package launcher

import (
	"context"
	"time"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/reaper"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// observe puts together what a decision looks at, and tells when it may look
// different although nothing happens.
func (s *session) observe(ctx context.Context) (*schedule.Snapshot, time.Time) {
	// First, as what is read after it has all that the last holder of a quota wrote.
	counted := s.quotas.Use()
	for name, c := range s.clouds {
		s.refusals.Tell(name, c)
	}
	nodes := s.own.Nodes()
	for _, c := range s.clouds {
		c.Recovered(nodes)
	}
	snap := &schedule.Snapshot{
		Now:        s.now(),
		Lag:        s.ahead(),
		Requests:   s.mirror.Requests(),
		Nodes:      nodes,
		Registered: s.mirror.Components(zkmodel.KindPool),
		Busy:       s.own.Requests(),
		Lost:       s.requests.Lost(),
		Since:      s.since,
		Evicted:    map[string]bool{},
		Grace:      grace,
		Tenants:    pool.TenantLimits(s.cfg),
		Order:      s.cfg.PoolOrder,
	}
	snap.Away = schedule.Absences(s.offers.Known(), snap.Registered, s.cfg.LauncherGrace, snap.Now, snap.Lag)
	snap.Failed = s.requests.Failed(snap.Requests)
	if s.mirror.Listed(zkmodel.RequestsRoot) == nil {
		s.requests.TellDeleted(snap.Requests)
	}
	snap.Frozen = reaper.Frozen(s.cfg, snap.Nodes)
	s.idleJudged(snap)
	s.reaper.Interrupted(snap)
	paused := s.heedPauses(ctx, snap)
	var due time.Time // of the first cloud that may be tried again
	snap.Uses, due = supply.Uses(s.clouds, snap.Nodes, snap.Now, s.waiting)
	again := schedule.Earlier(s.jobs.Next(), s.reaper.Leaving(snap), due, paused)
	for _, r := range snap.Requests {
		if !s.jobs.Left(inflight.Request(r.ID)).IsZero() {
			snap.Busy[r.ID] = true
		}
	}
	unlisted, noImages := s.mirror.Listed(zkmodel.NodesRoot), s.mirror.Listed(zkmodel.ImagesRoot)
	launching := map[string]int{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding {
			launching[n.Provider]++
		}
	}
	for _, p := range s.pools {
		view := s.clouds[p.Provider.Name].View()
		if unlisted != nil && view.Unavailable == "" {
			view.Unavailable = "nobody can tell how much is taken: " + unlisted.Error()
		}
		snap.Pools = append(snap.Pools, p.View(pool.Moment{
			Now: snap.Now, Cloud: view, Images: s.images, Unlisted: noImages, Launching: launching[p.Provider.Name], HoldsQuota: counted[p.Provider.Name],
		}))
	}
	return snap, again
}
