package pool

import (
	"cmp"
	"time"

	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// Moment is what a view of a pool depends on, beside its configuration.
type Moment struct {
	Now    time.Time
	Cloud  supply.View
	Images []*zkmodel.Image
	// Unlisted says why images may be lacking in Images; nil where none is.
	Unlisted error
	// Launching is how many nodes are in launch in the provider.
	Launching int
	// HoldsQuota says that the lock of the provider's quota is ours.
	HoldsQuota bool
}

// View is the pool as it stands at a moment, for decisions.
func (p *Pool) View(m Moment) *schedule.Pool {
	v := &schedule.Pool{
		ID: p.ID, Provider: p.Provider.Name, Name: p.Section.Name, Priority: p.Priority(),
		Disabled: p.Section.MaxServers == 0,
		Limits:   p.Limits(), Cloud: m.Cloud.Limits, Unavailable: m.Cloud.Unavailable, Broken: m.Cloud.Broken, Mute: m.Cloud.Mute, HoldsQuota: m.HoldsQuota,
		Idle: p.Provider.MaxConcurrency == 0, Room: -1, Zones: p.Section.AvailabilityZones,
		Offers: make(map[string]schedule.Offer, len(p.Section.Labels)), Frozen: p.Frozen, Rest: p.Rest,
		Static: m.Cloud.Static, Paused: m.Cloud.Paused,
	}
	if len(v.Zones) == 0 {
		v.Zones = m.Cloud.Zones
	}
	v.Zones = m.Cloud.Taught.OpenZones(v.Zones, m.Now)
	if p.Section.IgnoreProviderQuota {
		v.Cloud = nil
	} else {
		v.Unavailable = cmp.Or(v.Unavailable, m.Cloud.NoLimits)
	}
	if limit := p.Provider.MaxConcurrency; limit > 0 {
		v.Room = max(0, limit-m.Launching)
	}
	v.Learned = lesson.View{
		Lesson: m.Cloud.Taught.Lesson, Due: !m.Cloud.Taught.Due.After(m.Now),
		Burst: m.Cloud.Taught.Burst, Told: v.Cloud != nil || m.Cloud.Static,
	}
	for _, l := range supply.Labels(p.Section) {
		offer := m.Cloud.Needs[p.Section.Name][l.Name]
		offer.Ready = l.DiskImage == "" || bootable.Newest(m.Images, l.DiskImage, p.Provider.Name) != nil
		if !offer.Ready {
			if err := cmp.Or(m.Unlisted, bootable.Unread(m.Images, l.DiskImage)); err != nil {
				offer.Unread = err.Error()
			}
		}
		v.Offers[l.Name] = offer
	}
	v.Learned.Hint = schedule.Hint(v, m.Cloud.Limits)
	return v
}
