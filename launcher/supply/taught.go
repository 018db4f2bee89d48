package supply

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/zkmodel/recipe"
)

// Taught is what a cloud taught, and when it may be tried again.
type Taught struct {
	Lesson lesson.Lesson
	Due    time.Time
	Burst  lesson.Burst
	zones  map[string]time.Time // when each availability zone that lacked capacity is used again
	read   int64                // the transaction in which the tree was told what we read
}

// Lessons is what is known of the cloud's refusals.
func (c *Provider) Lessons() Taught {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taught
}

// Heed takes a lesson over, unless a later one is known.
func (c *Provider) Heed(l lesson.Lesson) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Number < c.taught.Lesson.Number {
		return
	}
	if old := c.taught.Lesson; l.Round != old.Round || l.Failures != old.Failures {
		// By our own clock, and not by that of the launcher that was refused. A little longer, so
		// that not all launchers come to try at once.
		pause := l.Pause()
		c.taught.Due = c.now().Add(pause + rand.N(pause/10))
	}
	c.taught.zones = c.zonesDue(l)
	c.taught.Lesson = l
}

// zonesDue is when each zone that lacked capacity is used again. The caller holds the lock.
func (c *Provider) zonesDue(l lesson.Lesson) map[string]time.Time {
	due := map[string]time.Time{}
	for zone, refusals := range l.Zones {
		if due[zone] = c.taught.zones[zone]; refusals != c.taught.Lesson.Zones[zone] {
			due[zone] = c.now().Add(l.ZonePause(zone))
		}
	}
	return due
}

// Avoids reports whether an availability zone is not used at the moment, because it lacked capacity.
func (t Taught) Avoids(zone string, now time.Time) bool { return t.zones[zone].After(now) }

// OpenZones are those of some zones that are not avoided; all, if all are: then their provider counts as full.
func (t Taught) OpenZones(zones []string, now time.Time) []string {
	open := slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return t.Avoids(z, now) })
	if len(open) == 0 {
		return zones
	}
	return open
}

// ZonesOf are the availability zones that the nodes of a pool are spread over; none leaves the choice to the cloud.
func (c *Provider) ZonesOf(pool string) []string {
	if p, ok := c.cfg.Pool(pool); ok && len(p.AvailabilityZones) > 0 {
		return p.AvailabilityZones
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zones
}

// Read takes over what the tree says.
func (c *Provider) Read(entry recipe.Entry) {
	c.mu.Lock()
	known := c.taught.read == entry.Stat.Mzxid
	c.taught.read = entry.Stat.Mzxid
	c.mu.Unlock()
	var l lesson.Lesson
	if !known && json.Unmarshal(entry.Data, &l) == nil {
		c.Heed(l)
	}
}

// Seen notes what is in the cloud, and whether requests wait.
func (c *Provider) Seen(use lesson.Use, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taught.Burst = c.taught.Burst.Seen(use, waiting)
	c.taught.Lesson = c.taught.Lesson.Seen(use.Held)
}

// ResetQuotaBackoff notes that the cloud has more room than it had, for a reason that our
// records do not show: it may be tried at once.
func (c *Provider) ResetQuotaBackoff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taught.Due = c.now()
}
