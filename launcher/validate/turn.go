package validate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"poolkeeper/launcher/inflight"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// errWithdrawn ends the work on a trial that is over: its upload is gone, or serves by an
// operator's word.
var errWithdrawn = errors.New("the trial is over")

// turn is this launcher's place in the line of those that try uploads in a provider, and,
// once it is the first, its work: one thing after the other, in one goroutine.
type turn struct {
	provider string
	work     chan func(context.Context)
	leave    context.CancelFunc

	lock *recipe.Held // the goroutine's of the turn, and of others once held is true

	mu    sync.Mutex
	held  bool
	busy  bool
	tries string                  // the path of the trial that is worked on
	stop  context.CancelCauseFunc // ends the work on it
	over  bool                    // that it is over was seen before the work has begun
	gone  bool                    // nobody works any more
}

// turn is that of a provider; nil when there is none.
func (v *Validator) turn(provider string) *turn {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.turns[provider]
}

// busy reports whether there is any turn.
func (v *Validator) busy() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.turns) > 0
}

// InHand is how many nodes are tried here.
func (v *Validator) InHand() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, t := range v.turns {
		if t.atWork() {
			n++
		}
	}
	return n
}

// resting is until when a provider is left to other launchers.
func (v *Validator) resting(provider string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rest[provider]
}

// pause leaves a provider to other launchers until a time.
func (v *Validator) pause(provider string, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rest[provider] = until
}

// enter stands in line in a provider.
func (v *Validator) enter(ctx context.Context, provider string) {
	ctx, leave := context.WithCancel(ctx)
	t := &turn{provider: provider, work: make(chan func(context.Context), 1), leave: leave}
	v.mu.Lock()
	v.turns[provider] = t
	v.mu.Unlock()
	v.Jobs.Spawn(func() {
		defer leave()
		err := v.serve(ctx, t)
		failed := err != nil && ctx.Err() == nil // it was not left
		leave()
		t.close(ctx)
		v.mu.Lock()
		delete(v.turns, provider)
		v.mu.Unlock()
		if failed {
			v.Log.Warn("Uploads cannot be tried in a provider yet", "provider", provider, "error", err, "retry", restTime)
			v.pause(provider, v.clock().Add(restTime))
		}
		v.Notify()
	})
}

// serve works while the turn is ours.
func (v *Validator) serve(ctx context.Context, t *turn) error {
	lock, err := v.Store.AwaitValidations(ctx, t.provider, v.Name)
	if err != nil {
		return err
	}
	defer func() {
		cleanup, done := inflight.Cleanup(ctx, v.Store.Session())
		defer done()
		_ = lock.Release(cleanup) // until the session ends
	}()
	ctx, cancel := lock.Bind(ctx)
	defer cancel()
	defer v.Hold(zkmodel.ValidationsPath(t.provider))()
	if err := v.Tree.Barrier(ctx); err != nil { // what the last one has written is seen
		return err
	}
	t.begin(lock)
	v.Notify()
	for {
		select {
		case work := <-t.work:
			work(ctx)
			t.done()
			v.Notify()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin says that the turn is ours.
func (t *turn) begin(lock *recipe.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lock, t.held = lock, true
}

// free reports whether the turn is ours, and nothing is being done.
func (t *turn) free() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held && !t.busy
}

// atWork reports whether a node is being tried.
func (t *turn) atWork() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tries != ""
}

// give has work done. The turn must be free. Work that nobody is left for is done at once,
// in a context that has ended.
func (t *turn) give(ctx context.Context, work func(context.Context)) {
	t.mu.Lock()
	gone := t.gone
	if t.busy = true; !gone {
		t.work <- work
	}
	t.mu.Unlock()
	if gone {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		work(ctx)
	}
}

// close ends the turn; ctx has ended.
func (t *turn) close(ctx context.Context) {
	t.mu.Lock()
	t.gone = true
	t.mu.Unlock()
	select {
	case work := <-t.work:
		work(ctx)
	default:
	}
}

// done says that work is done.
func (t *turn) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.tries, t.stop, t.over = false, "", nil, false
}

// end leaves the line.
func (t *turn) end() { t.leave() }

// trying says which trial the next work is about.
func (t *turn) trying(trial *zkmodel.Validation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tries = trial.Path()
}

// until is ctx, which also ends when the trial that is worked on is over.
func (t *turn) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop = stop; t.over {
		stop(errWithdrawn)
	}
	return ctx, func() { stop(nil) }
}

// withdraw ends the work on a trial that is not among those that go on.
func (t *turn) withdraw(goOn []*zkmodel.Validation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tries == "" || slices.ContainsFunc(goOn, func(v *zkmodel.Validation) bool { return v.Path() == t.tries }) {
		return
	}
	if t.over = true; t.stop != nil {
		t.stop(errWithdrawn)
	}
}
