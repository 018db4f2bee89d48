package launcher

import (
	"context"
	"sync"

	"poolkeeper/zkmodel/recipe"
)

// tenure is the lock of a provider's quota. Whoever launches nodes holds it, so
// that what is used is known and nobody else adds to it. It is kept until
// somebody else stands in line, so a launcher that is alone pays for it once,
// and several take turns, one round of decisions each.
type tenure struct {
	lock    *recipe.Lock
	barrier func(context.Context) error // returns when all is seen that was written before
	jobs    *jobs

	mu    sync.Mutex
	asked bool         // somebody stands in line for us, or takes over
	held  *recipe.Held // nil while we do not have it, or have not seen all yet
	rival bool         // somebody else stands in line
	used  bool         // a round of decisions has begun since we have it
}

// use begins a round of decisions and tells whether we have the lock in it.
func (t *tenure) use() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = t.used || t.ours()
	return t.ours()
}

// ours tells whether we have the lock. The mutex is held.
func (t *tenure) ours() bool { return t.held != nil && t.held.Context().Err() == nil }

// fence is the check that what is written is written under the lock, and
// whether we have it at all.
func (t *tenure) fence() (recipe.Op, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ours() {
		return recipe.Op{}, false
	}
	return t.held.Fence(), true
}

// want stands in line for the lock, unless we have it or do so already.
func (t *tenure) want(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked || t.ours() {
		return
	}
	t.asked = true
	t.jobs.spawn(func() { t.acquire(ctx) })
}

// acquire waits for the lock and for sight of all that the last holder wrote.
func (t *tenure) acquire(ctx context.Context) {
	held, err := t.lock.Acquire(ctx)
	if err == nil {
		if err = t.barrier(ctx); err != nil {
			_ = held.Release(context.WithoutCancel(ctx)) // until the session ends
		}
	}
	t.mu.Lock()
	t.asked = false
	if err == nil {
		t.held, t.rival, t.used = held, false, false
	}
	t.mu.Unlock()
	t.jobs.notify()
	if err != nil {
		return // the end of ctx, or the next round asks again
	}
	_ = held.Rival(ctx) // who cannot tell had better give it to whoever may be there
	t.mu.Lock()
	if t.held == held {
		t.rival = true
	}
	t.mu.Unlock()
	t.jobs.notify()
}

// yield gives the lock to whoever stands in line, at the end of a round in which
// we have had it.
func (t *tenure) yield(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil || !t.rival || !t.used {
		return
	}
	held := t.held
	t.held = nil
	t.jobs.spawn(func() { _ = held.Release(context.WithoutCancel(ctx)) }) // until the session ends
}

// end gives the lock back.
func (t *tenure) end(ctx context.Context) {
	t.mu.Lock()
	held := t.held
	t.held = nil
	t.mu.Unlock()
	if held != nil {
		_ = held.Release(ctx) // until the session ends
	}
}
