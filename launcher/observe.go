package launcher

import (
	"time"

	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/reaper"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// observe puts together what a decision looks at, and tells when it may look
// different although nothing happens.
func (s *session) observe() (*schedule.Snapshot, time.Time) {
	// First, as what is read after it has all that the last holder of a quota wrote.
	counted := map[string]bool{}
	for name, t := range s.tenures {
		counted[name] = t.Use()
	}
	for name, c := range s.clouds {
		s.refusals.Tell(name, c)
	}
	snap := &schedule.Snapshot{
		Now:        s.now(),
		Lag:        s.ahead(),
		Requests:   s.mirror.Requests(),
		Nodes:      s.own.Nodes(),
		Registered: s.mirror.Components(zkmodel.KindPool),
		Busy:       s.own.Requests(),
		Lost:       s.orphans.All(),
		Since:      s.since,
		Evicted:    map[string]bool{},
		Grace:      grace,
		Tenants:    pool.TenantLimits(s.cfg),
		Order:      s.cfg.PoolOrder,
	}
	snap.Away = schedule.Absences(s.offers.Known(), snap.Registered, s.cfg.LauncherGrace, snap.Now, snap.Lag)
	snap.Failed = s.failedHere(snap.Requests)
	snap.Frozen = reaper.Frozen(s.cfg, snap.Nodes)
	again := schedule.Earlier(s.jobs.Next(), s.leaving(snap))
	for _, r := range snap.Requests {
		if !s.jobs.Left(inflight.Request(r.ID)).IsZero() {
			snap.Busy[r.ID] = true
		}
	}
	unlisted := s.mirror.Listed(zkmodel.NodesRoot)
	launching := map[string]int{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding {
			launching[n.Provider]++
		}
	}
	again = schedule.Earlier(again, s.observeUses(snap))
	for _, p := range s.pools {
		view := s.clouds[p.Provider.Name].View()
		if unlisted != nil && view.Unavailable == "" {
			view.Unavailable = "nobody can tell how much is taken: " + unlisted.Error()
		}
		snap.Pools = append(snap.Pools, s.poolView(p, view, launching[p.Provider.Name], counted[p.Provider.Name]))
	}
	return snap, again
}

// poolView is a pool as it stands at this moment.
func (s *session) poolView(p *pool.Pool, view supply.View, launching int, counted bool) *schedule.Pool {
	v := &schedule.Pool{
		ID: p.ID, Provider: p.Provider.Name, Name: p.Section.Name, Priority: p.Priority(),
		Disabled: p.Section.MaxServers == 0,
		Limits:   p.Limits(), Cloud: view.Limits, Unavailable: view.Unavailable, Broken: view.Broken, Mute: view.Mute, HoldsQuota: counted,
		Idle: p.Provider.MaxConcurrency == 0, Room: -1, Zones: p.Section.AvailabilityZones,
		Offers: make(map[string]schedule.Offer, len(p.Section.Labels)), Frozen: p.Frozen, Rest: p.Rest,
	}
	if len(v.Zones) == 0 {
		v.Zones = view.Zones
	}
	if p.Section.IgnoreProviderQuota {
		v.Cloud = nil
	}
	if limit := p.Provider.MaxConcurrency; limit > 0 {
		v.Room = max(0, limit-launching)
	}
	v.Learned = lesson.View{
		Lesson: view.Taught.Lesson, Due: !view.Taught.Due.After(s.now()),
		Burst: view.Taught.Burst, Told: v.Cloud != nil || view.Static,
	}
	v.Static = view.Static
	for _, l := range supply.Labels(p.Section) {
		offer := view.Needs[p.Section.Name][l.Name]
		offer.Ready = l.DiskImage == "" || bootable.Newest(s.images, l.DiskImage, p.Provider.Name) != nil
		v.Offers[l.Name] = offer
	}
	v.Learned.Hint = schedule.Hint(v, view.Limits)
	return v
}

// observeUses counts what is in the clouds whose room is not known, and tells when
// the first may be tried again.
func (s *session) observeUses(snap *schedule.Snapshot) (again time.Time) {
	late := map[string]bool{}
	for _, p := range s.pools {
		known := s.clouds[p.Provider.Name].Lessons()
		if known.Lesson.Failures > 0 || p.Section.IgnoreProviderQuota {
			late[p.Provider.Name] = known.Lesson.Late
		}
		if known.Due.After(snap.Now) {
			again = schedule.Earlier(again, known.Due)
		}
	}
	snap.Uses = schedule.Uses(snap.Nodes, late, snap.Now, "")
	for name, use := range snap.Uses {
		s.clouds[name].Seen(*use, s.waiting)
	}
	return again
}

// leaving takes over which idle nodes are being marked for deletion: until the
// mirror shows it, or it did not work.
func (s *session) leaving(snap *schedule.Snapshot) (again time.Time) {
	ready := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeReady {
			ready[n.ID] = true
		}
	}
	for id, told := range s.evicted {
		if over := told.Add(reaper.EvictTime); ready[id] && over.After(snap.Now) {
			snap.Evicted[id], again = true, schedule.Earlier(again, over)
		} else {
			delete(s.evicted, id)
		}
	}
	return again
}
