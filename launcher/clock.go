package launcher

import (
	"context"
	"time"

	"poolkeeper/launcher/reap"
)

// Times in the tree's stats are ZooKeeper's, those in records are their writers',
// timers are ours. Whatever is compared is compared on ZooKeeper's clock.

// ahead is how far ZooKeeper's clock is ahead of ours, as last read; negative when
// ours is early.
func (l *Launcher) ahead() time.Duration { return time.Duration(l.clock.Load()) }

// readClock measures that.
func (s *session) readClock(ctx context.Context) error {
	ahead, err := s.store.Ahead(ctx)
	if err == nil {
		s.clock.Store(int64(ahead))
		if ahead.Abs() > reap.MostDrift {
			s.log.Warn("Clock of this host is wrong; nothing is deleted by age until it is right",
				"off", -ahead.Round(time.Millisecond), "most", reap.MostDrift)
		}
	}
	return err
}
