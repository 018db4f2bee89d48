package actions

import (
	"context"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// lockWait is how long an action waits for the lock of a record, which others
// hold for moments only.
const lockWait = 5 * time.Second

// cleanupTime is how long we take to tell the tree of what we were stopped in.
const cleanupTime = 3 * time.Second

// Release gives a lock up, also when the context of the work has ended.
func Release(ctx context.Context, lock *recipe.Held) {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	_ = lock.Release(ctx) // goes on in the background; or the session has ended
}

// cleanupContext is for what is written under a lock after the work: it outlives that.
// Should the lock be lost, its fence refuses it.
func cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return clock.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// stopped reports whether work ended because this builder ends, while the lock
// that it was done under is still held.
func stopped(ctx context.Context, lock *recipe.Held) bool {
	return ctx.Err() != nil && lock.Context().Err() == nil
}

// whileKept returns a context that ends with ErrDeleted when the record at path is removed or
// marked for deletion. Nodepool's commands and scripts do so without any lock.
func (w *Worker) whileKept(ctx context.Context, path string, isMarked func(data []byte, stat recipe.Stat) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Store.Session().Watch(ctx, path, func(data []byte, stat recipe.Stat, exists bool) bool {
			if exists && !isMarked(data, stat) {
				return true
			}
			cancel(ErrDeleted)
			return false
		})
	}()
	return ctx, func() { cancel(nil); <-done }
}

// claim waits for a place under a limit that all builders share; 0 is none. The
// context that it returns ends when the place is lost. why is what people are shown.
func (w *Worker) claim(ctx context.Context, path, why string, limit int) (context.Context, func(), error) {
	if limit <= 0 {
		return ctx, func() {}, nil
	}
	held, err := recipe.NewSemaphore(w.Store.Session(), path, zkmodel.ClaimText(w.FQDN, why), limit).Acquire(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	bound, unbind := held.Bind(ctx)
	return bound, func() { unbind(); Release(ctx, held) }, nil
}
