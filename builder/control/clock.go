package control

import (
	"context"
	"sync"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// treeClock tells ZooKeeper's time, which is that of every Stat, by the time that has passed
// here since it was read: neither a host whose clock is wrong nor one whose clock is put
// right meanwhile counts ages wrongly. Before the first reading it tells our own.
type treeClock struct {
	ours func() time.Time

	mu    sync.Mutex
	at    time.Time     // ours, when it was read
	ahead time.Duration // ZooKeeper's, then
}

func (c *treeClock) now() time.Time {
	now := c.ours()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return now
	}
	return c.at.Add(c.ahead).Add(now.Sub(c.at))
}

// off is by how much our clock was early, as last read; negative when it was late.
func (c *treeClock) off() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return -c.ahead
}

func (c *treeClock) set(at time.Time, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.ahead = at, ahead
}

// readClock reads ZooKeeper's clock, and says so if ours is wrong.
func (c *Control) readClock(ctx context.Context, s *recipe.Session) {
	ahead, _, err := recipe.Ahead(ctx, s, zkmodel.ClockPath, c.Now)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("Cannot read ZooKeeper's clock; the last reading stands", "error", err)
		}
		return
	}
	c.clock.set(c.Now(), ahead)
	c.Metrics.ClockOff(-ahead)
	if plan.Adrift(-ahead) {
		c.Log.Warn("Clock of this host is wrong; ages count by ZooKeeper's, and nothing is deleted by age until it is right",
			"off", -ahead.Round(time.Millisecond), "most", plan.MostDrift)
	}
}
