package launcher

import (
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// observe puts together what a decision looks at, and tells when it may look
// different although nothing happens.
func (s *shift) observe() (*Snapshot, time.Time) {
	// First, as what is read after it has all that the last holder of a quota wrote.
	counted := map[string]bool{}
	for name, t := range s.tenures {
		counted[name] = t.use()
	}
	snap := &Snapshot{
		Now:        s.now(),
		Lag:        s.lag,
		Requests:   s.mirror.Requests(),
		Nodes:      s.own.over(s.mirror.Nodes),
		Registered: s.mirror.Components(zkmodel.KindPool),
		Busy:       s.own.busy(),
		Lost:       s.lostRequests(),
		Since:      s.since,
		Evicted:    map[string]bool{},
		Grace:      grace,
		Tenants:    tenantLimits(s.cfg),
	}
	again := earlier(s.jobs.next(), s.leaving(snap))
	for _, r := range snap.Requests {
		if !s.jobs.left("request " + r.ID).IsZero() {
			snap.Busy[r.ID] = true
		}
	}
	launching := map[string]int{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding {
			launching[n.Provider]++
		}
	}
	for _, p := range s.pools {
		view := s.clouds[p.provider.Name].view()
		again = earlier(again, view.again)
		snap.Pools = append(snap.Pools, s.poolView(p, view, launching[p.provider.Name], counted[p.provider.Name]))
	}
	return snap, again
}

// poolView is a pool as it stands at this moment.
func (s *shift) poolView(p *pool, view cloudView, launching int, counted bool) *Pool {
	v := &Pool{
		ID: p.id, Provider: p.provider.Name, Name: p.config.Name, Priority: p.priority(),
		Disabled: p.config.MaxServers == 0,
		Limits:   poolLimits(p.config), Cloud: view.limits, Hold: view.hold, Broken: view.broken, Counted: counted,
		Idle: p.provider.MaxConcurrency == 0, Room: -1, Zones: p.config.AvailabilityZones,
		Offers: make(map[string]Offer, len(p.config.Labels)),
	}
	if len(v.Zones) == 0 {
		v.Zones = view.zones
	}
	if p.config.IgnoreProviderQuota {
		v.Cloud = nil
	}
	if limit := p.provider.MaxConcurrency; limit > 0 {
		v.Room = max(0, limit-launching)
	}
	v.Fixed = p.provider.Driver == configs.DriverStatic
	for _, l := range labelsOf(p.config) {
		offer := view.needs[p.config.Name][l.Name]
		offer.Ready = v.Fixed || l.CloudImage != "" || newest(s.images, l.DiskImage, p.provider.Name) != nil
		v.Offers[l.Name] = offer
	}
	return v
}

// leaving takes over which idle nodes are being marked for deletion: until the
// mirror shows it, or it did not work.
func (s *shift) leaving(snap *Snapshot) (again time.Time) {
	ready := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeReady {
			ready[n.ID] = true
		}
	}
	for id, told := range s.evicted {
		if over := told.Add(evictTime); ready[id] && over.After(snap.Now) {
			snap.Evicted[id], again = true, earlier(again, over)
		} else {
			delete(s.evicted, id)
		}
	}
	return again
}
