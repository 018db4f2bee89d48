package shared

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/reap"
)

// Clock knows ZooKeeper's clock. Times in the tree's stats are ZooKeeper's, those in
// records are their writers', timers are ours. Whatever is compared is compared on
// ZooKeeper's clock. It may be read at any time.
type Clock struct{ ahead atomic.Int64 } // in ns

// Ahead is how far ZooKeeper's clock is ahead of ours, as last read; negative when
// ours is early, 0 before it was read.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Measurer asks ZooKeeper for its clock; *zkmodel.Store is one.
type Measurer interface {
	// Ahead is how far it is ahead of ours.
	Ahead(ctx context.Context) (time.Duration, error)
}

// Read measures it anew, and warns when this host is so far off that it deletes nothing.
func (c *Clock) Read(ctx context.Context, zookeeper Measurer, log hclog.Logger) error {
	ahead, err := zookeeper.Ahead(ctx)
	if err != nil {
		return err
	}
	c.ahead.Store(int64(ahead))
	if ahead.Abs() > reap.MostDrift {
		log.Warn("Clock of this host is wrong; nothing is deleted by age until it is right",
			"off", -ahead.Round(time.Millisecond), "most", reap.MostDrift)
	}
	return nil
}
