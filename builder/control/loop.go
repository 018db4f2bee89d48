package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/trial"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// loop is the work of one session: whenever something about an image changes,
// it decides anew about that image, and starts what can be started. All its
// state belongs to one goroutine.
type loop struct {
	*Control
	store   *zkmodel.Store
	actions Actions
	trials  *trial.Keeper
	queue   *queue
	retries retries
	dirty   map[string]bool      // images to decide about
	alarms  map[string]time.Time // when to decide about an image that nobody touches
	short   map[string]bool      // images that wait for room on the disk
	nobody  unmanned             // where uploads wait that no launcher tries
	manned  time.Time            // when to look at that again; zero is when something changes
	canary  map[[2]string]string // the canary before each upload that waits, by provider and image
	members []string             // the builders that were registered, and how they worked
	done    chan ended
	left    chan struct{} // closed when nobody listens to done any more
	work    sync.WaitGroup
	tells   recipe.Throttle // of what we may not change
}

// drainPatience is how long work that was told to end may take: a build's grace,
// the sweep, and the last words to the tree.
const drainPatience = 9 * time.Second

// ended is an action that came to its end.
type ended struct {
	*task
	err error
}

func newLoop(c *Control, s Session) *loop {
	return &loop{
		Control: c, store: s.Store, actions: c.Worker(s), trials: s.Trials,
		queue:   newQueue(c.BuildWorkers, c.UploadWorkers),
		retries: retries{},
		dirty:   map[string]bool{},
		alarms:  map[string]time.Time{},
		short:   map[string]bool{},
		nobody:  unmanned{since: map[string]time.Time{}, told: map[string]bool{}},
		done:    make(chan ended),
		left:    make(chan struct{}),
	}
}

// run works until ctx ends and everything that runs has come to its end.
func (l *loop) run(ctx context.Context) error {
	changes, verdicts, pauses := l.Mirror.SubscribeImages(), l.Mirror.SubscribeVerdicts(), l.Mirror.SubscribePauses()
	validations, canaries, builders := l.Mirror.SubscribeValidations(), l.Mirror.SubscribeCanaries(), l.Mirror.SubscribeComponents()
	for _, s := range []*recipe.Subscription{changes, verdicts, pauses, validations, canaries, builders} {
		defer s.Close()
	}
	resync := clock.NewTicker(ctx, l.Resync)
	defer resync.Stop()
	alarm := clock.NewTimer(ctx, 0)
	defer alarm.Stop()
	l.queue.now, l.tells.Clock = clock.Of(ctx).Now, clock.Of(ctx)
	l.working.Store(true)
	defer l.drain(ctx)
	defer l.working.Store(false)

	l.work.Go(func() { l.actions.Patrol(ctx) })
	l.work.Go(func() { l.watchHost(ctx) })
	l.work.Go(func() { <-ctx.Done(); l.trials.Wait() })
	l.mark(l.all()...)
	for {
		l.decide(ctx)
		l.start(ctx)
		l.publish()
		l.tellUnmanned()
		alarm.Reset(l.untilAlarm())
		select {
		case <-changes.C():
			l.mark(changes.Take()...)
		case <-verdicts.C():
			l.mark(verdicts.Take()...)
		case <-validations.C():
			validations.Take()
			l.tellTrials()
			l.mark(l.onTrial()...)
		case <-pauses.C():
			pauses.Take()
			l.mark(l.all()...)
		case <-canaries.C():
			canaries.Take()
			l.mark(l.canariesMoved()...)
		case <-builders.C():
			builders.Take()
			l.heedMembers()
			l.mark(l.canariesMoved()...)
		case e := <-l.done:
			l.finish(e)
		case <-alarm.C:
			l.ring()
		case <-l.pulse:
		case <-l.woken:
			l.ForgetSeries()
			clear(l.retries)
			l.mark(l.all()...)
		case <-resync.C:
			l.resync(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// resync looks at everything again: for what nothing tells of.
func (l *loop) resync(ctx context.Context) {
	l.ForgetSeries()
	l.tellTrials()
	l.work.Go(func() { l.readClock(ctx, l.store.Session()) })
	l.mark(l.all()...)
}

// start starts what waits, as far as there are workers.
func (l *loop) start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	l.queue.receivers = receivers(l.Config())
	for t := l.queue.next(); t != nil; t = l.queue.next() {
		work, cancel := context.WithCancelCause(ctx)
		t.cancel = cancel
		l.work.Go(func() {
			l.Log.Debug("Action begins", "action", t.key, "why", t.Why)
			doing := t.Action
			doing.Since = t.since
			err := l.actions.Do(work, doing)
			if cause := context.Cause(work); err != nil && (errors.Is(cause, errBuildDeleted) || errors.Is(cause, errJudged)) {
				err = actions.ErrStale
			}
			cancel(nil)
			if err == nil {
				// The next decision must see what this one has led to.
				err = l.Mirror.Barrier(ctx)
			}
			l.inFlight.end(t.Action)
			select {
			case l.done <- ended{t, err}:
			case <-l.left:
			}
		})
	}
}

// receivers counts the providers that images are uploaded to.
func receivers(cfg *configs.Config) int {
	n := 0
	for i := range cfg.Providers {
		if len(cfg.Providers[i].DiskImages) > 0 {
			n++
		}
	}
	return n
}

// finish takes an action out of the queue and looks at its image again.
func (l *loop) finish(e ended) {
	l.queue.done(e.task)
	if l.retries.note(e.key, l.clock.now(), e.err) {
		l.tells.Failed(l.Log, e.err, "Action failed, retrying", "action", e.key, "why", e.Why)
		l.Metrics.Failed(e.Kind)
	}
	l.mark(e.Image)
}

// drain waits for all that runs, which ends soon as its context has ended. What
// does not, in a cloud's library perhaps, is left to itself: its locks are lost,
// so that it can do no harm.
func (l *loop) drain(ctx context.Context) {
	over := make(chan struct{})
	go func() {
		l.work.Wait()
		close(over)
	}()
	patience := clock.NewTimer(ctx, drainPatience)
	defer patience.Stop()
	defer close(l.left)
	for {
		select {
		case e := <-l.done:
			l.queue.done(e.task)
		case <-over:
			return
		case <-patience.C:
			l.Log.Error("Actions missed the shutdown deadline; abandoning", "actions", slices.Sorted(maps.Keys(l.queue.running)))
			return
		}
	}
}
