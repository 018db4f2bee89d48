package launcher

import (
	"time"

	"poolkeeper/zkmodel"
)

// Fairness at a full pool, in both directions. A request that does not fit must
// not stop smaller ones for ever, and must not be overtaken for ever. So time is
// divided, from its birth on: for a while others may go past it, then the pool
// drains for it, and so on. Others wait for it at most drainTime at a stretch; it
// has room, at the latest, when the nodes that run at the beginning of a drain
// are gone, if that takes no longer than drainTime.
const (
	overtakeTime = 30 * time.Second
	drainTime    = 5 * time.Minute
)

// drains tells whether a pool is kept free for a request that waits in it for
// room, and when that changes. All launchers agree, as the time of birth is
// ZooKeeper's.
func drains(r *zkmodel.Request, now time.Time) (bool, time.Time) {
	age := max(now.Sub(r.Stat.Ctime), 0)
	phase := age % (overtakeTime + drainTime)
	if phase < overtakeTime {
		return false, now.Add(overtakeTime - phase)
	}
	return true, now.Add(overtakeTime + drainTime - phase)
}
