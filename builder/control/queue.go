package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs/clock"
)

// How many actions of a lane run at once, where the operator does not say.
const (
	cloudLane = 4  // deletions at one provider: a slow cloud holds up itself alone
	treeLane  = 16 // what is done in the tree or on the disk
)

// turn is how long builds that are asked for come before one that is due, and that
// waits: from then on it is one of them.
const turn = time.Hour

// queue holds the actions that wait and knows those that run. It is for one
// goroutine.
type queue struct {
	builds, uploads int // how many may run
	waiting         []*task
	running         map[string]*task
	count           map[string]int // running, by lane
	served          map[string]int // when an action of a lane began last, in their order
	receivers       int            // providers that the configuration uploads to
	last            int
	now             func() time.Time
}

// task is an action in the queue.
type task struct {
	plan.Action
	key    string
	order  int
	since  time.Time               // when it came
	cancel context.CancelCauseFunc // of one that runs
}

// newQueue makes an empty queue with as many workers for builds and uploads.
func newQueue(builds, uploads int) *queue {
	return &queue{
		builds: builds, uploads: uploads,
		running: map[string]*task{}, count: map[string]int{}, served: map[string]int{}, now: clock.Clock{}.Now,
	}
}

// lane is where an action waits: those of one lane share a number of workers.
func lane(a plan.Action) string {
	switch a.Kind {
	case plan.Build:
		return string(a.Kind)
	case plan.Upload:
		return uploadLane(a.Provider)
	case plan.DeleteUpload, plan.ReclaimUpload:
		return "cloud " + a.Provider
	case plan.ClearRequest, plan.MarkBuild, plan.DeleteBuild, plan.RemoveFiles, plan.RemoveFormat, plan.Adopt, plan.MoveLog:
	}
	return "tree"
}

func uploadLane(provider string) string { return "upload " + provider }

func (q *queue) width(lane string) int {
	switch lane {
	case string(plan.Build):
		return q.builds
	case "tree":
		return treeLane
	}
	return cloudLane
}

// room reports whether a worker is free for an action.
func (q *queue) room(a plan.Action) bool {
	if a.Kind == plan.Upload {
		return q.roomToUpload(a.Provider)
	}
	l := lane(a)
	return q.count[l] < q.width(l)
}

// roomToUpload reports whether a worker is free for an upload to a provider. One
// of several providers gets at most half of the workers, and the last free
// worker only when every provider has one: one that is slow or refuses holds up
// itself.
func (q *queue) roomToUpload(provider string) bool {
	total, lanes := 0, map[string]bool{}
	for _, t := range q.running {
		if t.Kind == plan.Upload {
			total++
			lanes[t.Provider] = true
		}
	}
	free, own := q.uploads-total, q.count[uploadLane(provider)]
	switch {
	case free <= 0:
		return false
	case own == 0 || q.receivers < 2:
		return true
	}
	last := free == 1 && len(lanes) < q.receivers
	return !last && own < max(1, q.uploads/2)
}

// set replaces what waits for an image. What waited before keeps its place.
func (q *queue) set(image string, actions []plan.Action) {
	places := map[string]*task{}
	q.waiting = slices.DeleteFunc(q.waiting, func(t *task) bool {
		if t.Image == image {
			places[t.key] = t
		}
		return t.Image == image
	})
	for _, a := range actions {
		key := a.Key()
		if q.running[key] != nil {
			continue
		}
		t := &task{Action: a, key: key}
		if was := places[key]; was != nil {
			t.order, t.since = was.order, was.since
		} else {
			q.last++
			t.order, t.since = q.last, q.now()
		}
		q.waiting = append(q.waiting, t)
	}
}

// next takes the action that is to start now, if one is.
func (q *queue) next() *task {
	var best *task
	for _, t := range q.waiting {
		if q.room(t.Action) && (best == nil || q.before(t, best)) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(t *task) bool { return t == best })
	q.running[best.key] = best
	q.count[lane(best.Action)]++
	q.last++
	q.served[lane(best.Action)] = q.last
	return best
}

// before orders what waits: builds that are asked for, or that have waited for long,
// come first; of uploads, those to the provider that has the fewest under way, and then to
// the one whose turn was the longest ago, so that each waits for one upload to each other at
// most; then who came first.
func (q *queue) before(a, b *task) bool {
	wish := func(t *task) int {
		if t.Requested || q.now().Sub(t.since) >= turn {
			return 0
		}
		return 1
	}
	of := func(t *task, lanes map[string]int) int { return lanes[lane(t.Action)] * isUpload(t) }
	return cmp.Or(
		cmp.Compare(wish(a), wish(b)),
		cmp.Compare(of(a, q.count), of(b, q.count)),
		cmp.Compare(of(a, q.served), of(b, q.served)),
		cmp.Compare(a.order, b.order),
	) < 0
}

func isUpload(t *task) int {
	if t.Kind == plan.Upload {
		return 1
	}
	return 0
}

// waits counts what waits, by kind.
func (q *queue) waits() map[plan.Kind]int {
	counts := map[plan.Kind]int{}
	for _, t := range q.waiting {
		counts[t.Kind]++
	}
	return counts
}

// uploadsOf are the uploads of an image that run.
func (q *queue) uploadsOf(image string) []*task {
	var list []*task
	for _, t := range q.running {
		if t.Kind == plan.Upload && t.Image == image {
			list = append(list, t)
		}
	}
	return list
}

// done takes an action out.
func (q *queue) done(t *task) {
	delete(q.running, t.key)
	q.count[lane(t.Action)]--
}
