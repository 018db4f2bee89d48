package schedule

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
//
// Of all that wait in front of a request, the oldest has a say: were it the most
// urgent, younger ones that come and go before it would let everybody past an old
// one for ever; were it any of them, together they could bar the way for ever.
const (
	overtakeTime = 30 * time.Second
	drainTime    = 5 * time.Minute
)

// drains reports whether a pool is kept free for a request that waits in it for
// room, and when that changes. All launchers agree, as the time of birth is
// ZooKeeper's, and a clock that is behind ZooKeeper's is put right.
func (s *Snapshot) drains(r *zkmodel.Request) (bool, time.Time) {
	now := s.Now
	age := max(now.Sub(r.Stat.Ctime)+s.Lag, 0)
	phase := age % (overtakeTime + drainTime)
	if phase < overtakeTime {
		return false, now.Add(overtakeTime - phase)
	}
	return true, now.Add(overtakeTime + drainTime - phase)
}

// queue is who waits for the same, of those that were decided over so far.
type queue struct {
	first *zkmodel.Request // the oldest, which has a say
	held  bool             // another waits for it already
}

// queues are those for all pools, providers or tenants, by their names.
type queues map[string]*queue

// join adds one that waits, and reports whether it has the say from now on. Where
// another waits for who has it, the say stays: or those that come after both would go
// past the other, which they must not, as it is better.
func (q queues) join(name string, r *zkmodel.Request) bool {
	line := q[name]
	if line == nil {
		q[name] = &queue{first: r}
		return true
	}
	if line.held || !r.Stat.Ctime.Before(line.first.Stat.Ctime) {
		return false
	}
	line.first = r
	return true
}

// closed is the request for which room is kept now, so that who asks has to wait; nil
// when there is none.
func (s *Snapshot) closed(line *queue) *zkmodel.Request {
	if line == nil {
		return nil
	}
	if yes, _ := s.drains(line.first); !yes {
		return nil
	}
	line.held = true
	return line.first
}
