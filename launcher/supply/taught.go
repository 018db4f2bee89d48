package supply

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/zkmodel/recipe"
)

// Taught is what a cloud taught, and when it may be tried again.
type Taught struct {
	Lesson lesson.Lesson
	Due    time.Time
	Burst  lesson.Burst
	read   int64 // the transaction in which the tree was told what we read
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
	c.taught.Lesson = l
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
