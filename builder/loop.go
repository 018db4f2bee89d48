package builder

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// loop is the work of one session: whenever something about an image changes,
// it decides anew about that image, and starts what can be started. All its
// state belongs to one goroutine.
type loop struct {
	*Builder
	store   *zkmodel.Store
	queue   *queue
	retries retries
	dirty   map[string]bool      // images to decide about
	alarms  map[string]time.Time // when to decide about an image that nobody touches
	short   map[string]bool      // images that wait for room on the disk
	done    chan ended
	left    chan struct{} // closed when nobody listens to done any more
	work    sync.WaitGroup
}

// drainPatience is how long work that was told to end may take: a build's grace,
// the sweep, and the last words to the tree.
const drainPatience = 9 * time.Second

// ended is an action that came to its end.
type ended struct {
	*task
	err error
}

func newLoop(b *Builder, store *zkmodel.Store) *loop {
	return &loop{
		Builder: b, store: store,
		queue:   newQueue(b.deps.BuildWorkers, b.deps.UploadWorkers),
		retries: retries{},
		dirty:   map[string]bool{},
		alarms:  map[string]time.Time{},
		short:   map[string]bool{},
		done:    make(chan ended),
		left:    make(chan struct{}),
	}
}

// run works until ctx ends and everything that runs has come to its end.
func (l *loop) run(ctx context.Context) error {
	changes := l.mirror.SubscribeImages()
	defer changes.Close()
	builders := l.mirror.SubscribeComponents()
	defer builders.Close()
	resync := time.NewTicker(l.deps.Resync)
	defer resync.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	l.working.Store(true)
	defer l.drain()
	defer l.working.Store(false)

	l.work.Go(func() { l.patrol(ctx) })
	l.mark(l.everything()...)
	for {
		l.decide()
		l.start(ctx)
		alarm.Reset(l.untilAlarm())
		select {
		case <-changes.C():
			l.mark(changes.Take()...)
		case <-builders.C():
			// Who is gone has left work behind, and locks that others waited for.
			builders.Take()
			clear(l.retries)
			l.mark(l.everything()...)
		case e := <-l.done:
			l.finish(e)
		case <-alarm.C:
			l.ring()
		case <-l.pulse:
		case <-l.woken:
			clear(l.retries)
			l.mark(l.everything()...)
		case <-resync.C:
			l.mark(l.everything()...)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *loop) mark(images ...string) {
	for _, image := range images {
		l.dirty[image] = true
	}
}

// decide makes new plans for the images that have changed.
func (l *loop) decide() {
	for image := range l.dirty {
		in := l.look(image)
		decided := plan.Decide(in)
		ready, next := l.retries.ready(decided.Actions, in.Now)
		l.queue.set(image, ready)
		delete(l.alarms, image)
		for _, t := range []time.Time{next, decided.Next} {
			if first, set := l.alarms[image]; !t.IsZero() && (!set || t.Before(first)) {
				l.alarms[image] = t
			}
		}
		l.metrics.look(in)
		l.tellSpace(image, decided.NoSpace)
	}
	clear(l.dirty)
}

// tellSpace warns, once, of a build that the disk has no room for: it is not
// begun, so no record tells of it.
func (l *loop) tellSpace(image, noSpace string) {
	if noSpace != "" && !l.short[image] {
		l.log.Warn("A build is due, and the disk has no room for it; it waits", "image", image,
			"folder", l.config.Load().ImagesDir, "space", noSpace)
	}
	l.short[image] = noSpace != ""
}

// start starts what waits, as far as there are workers.
func (l *loop) start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for t := l.queue.next(); t != nil; t = l.queue.next() {
		l.work.Go(func() {
			l.log.Debug("Start", "action", t.key, "why", t.Why)
			err := l.act(ctx, t.Action)
			if err == nil {
				// The next decision must see what this one has led to.
				err = l.mirror.Barrier(ctx)
			}
			l.doing.end(t.Action)
			select {
			case l.done <- ended{t, err}:
			case <-l.left:
			}
		})
	}
}

// finish takes an action out of the queue and looks at its image again.
func (l *loop) finish(e ended) {
	l.queue.done(e.task)
	if l.retries.note(e.key, l.deps.Now(), e.err) {
		l.log.Warn("Not done", "action", e.key, "why", e.Why, "error", e.err)
		l.metrics.failed(e.Kind)
	}
	l.mark(e.Image)
}

// drain waits for all that runs, which ends soon as its context has ended. What
// does not, in a cloud's library perhaps, is left to itself: its locks are lost,
// so that it can do no harm.
func (l *loop) drain() {
	over := make(chan struct{})
	go func() {
		l.work.Wait()
		close(over)
	}()
	patience := time.NewTimer(drainPatience)
	defer patience.Stop()
	defer close(l.left)
	for {
		select {
		case e := <-l.done:
			l.queue.done(e.task)
		case <-over:
			return
		case <-patience.C:
			l.log.Error("Something does not end and is left to itself", "actions", slices.Sorted(maps.Keys(l.queue.running)))
			return
		}
	}
}

// untilAlarm is the time until the first alarm. The clock may be a test's, which
// stands still: then it is asked again before long.
func (l *loop) untilAlarm() time.Duration {
	wait := l.deps.Resync
	now := l.deps.Now()
	for _, t := range l.alarms {
		wait = min(wait, t.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// ring marks the images whose time has come.
func (l *loop) ring() {
	now := l.deps.Now()
	for image, t := range l.alarms {
		if !now.Before(t) {
			l.mark(image)
			delete(l.alarms, image)
		}
	}
}
