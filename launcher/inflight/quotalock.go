package inflight

import (
	"context"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
)

// QuotaLock is the lock of a provider's quota. Whoever launches nodes holds it, so
// that what is used is known and nobody else adds to it. It is kept until
// another launcher stands in line, so a launcher that is alone pays for it once,
// and several take turns, one round of decisions each.
type QuotaLock struct {
	acquire func(context.Context) (Held, error)
	barrier func(context.Context) error // returns when all is seen that was written before
	jobs    *Jobs

	mu    sync.Mutex
	asked bool // a job stands in line for us, or takes over
	held  Held // nil while we do not have it, or have not seen all yet
	rival bool // another launcher stands in line
	used  bool // a round of decisions has begun since we have it
}

// Held is a lock that is ours: a recipe.Held.
type Held interface {
	Context() context.Context // ends when the lock is lost
	Fence() recipe.Op
	Rival(ctx context.Context) error // returns when another launcher stands in line
	Release(ctx context.Context) error
}

// NewQuotaLock makes one of a lock that nobody has yet. acquire waits for it; barrier
// returns when all is seen that was written before.
func NewQuotaLock(acquire func(context.Context) (Held, error), barrier func(context.Context) error, jobs *Jobs) *QuotaLock {
	return &QuotaLock{acquire: acquire, barrier: barrier, jobs: jobs}
}

// Use begins a round of decisions and reports whether we have the lock in it.
func (q *QuotaLock) Use() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = q.used || q.ours()
	return q.ours()
}

// ours reports whether we have the lock. The mutex is held.
func (q *QuotaLock) ours() bool { return q.held != nil && q.held.Context().Err() == nil }

// Fence is the check that what is written is written under the lock, and
// whether we have it at all.
func (q *QuotaLock) Fence() (recipe.Op, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ours() {
		return recipe.Op{}, false
	}
	return q.held.Fence(), true
}

// Want stands in line for the lock, unless we have it or do so already.
func (q *QuotaLock) Want(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked || q.ours() {
		return
	}
	q.asked = true
	q.jobs.Spawn(func() { q.await(ctx) })
}

// await waits for the lock and for sight of all that the last holder wrote.
func (q *QuotaLock) await(ctx context.Context) {
	held, err := q.acquire(ctx)
	if err == nil {
		if err = q.barrier(ctx); err != nil {
			_ = held.Release(context.WithoutCancel(ctx)) // until the session ends
		}
	}
	if err != nil {
		_ = clock.Sleep(ctx, time.Second) // the next round asks again, and would fail alike
	}
	q.mu.Lock()
	q.asked = false
	if err == nil {
		q.held, q.rival, q.used = held, false, false
	}
	q.mu.Unlock()
	q.jobs.notify()
	if err != nil {
		return
	}
	_ = held.Rival(ctx) // who cannot tell had better give it to another that may be there
	q.mu.Lock()
	if q.held == held {
		q.rival = true
	}
	q.mu.Unlock()
	q.jobs.notify()
}

// Yield gives the lock to the launcher that stands in line, at the end of a round in which
// we have had it.
func (q *QuotaLock) Yield(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held == nil || !q.rival || !q.used {
		return
	}
	held := q.held
	q.held = nil
	q.jobs.Spawn(func() { _ = held.Release(context.WithoutCancel(ctx)) }) // until the session ends
}

// Doubt gives the lock back because nobody knows what became of something written under it:
// the answer was lost. It is ours again when all is seen, as what was written counts, too.
func (q *QuotaLock) Doubt(ctx context.Context) { q.End(ctx) }

// End gives the lock back.
func (q *QuotaLock) End(ctx context.Context) {
	q.mu.Lock()
	held := q.held
	q.held = nil
	q.mu.Unlock()
	if held != nil {
		_ = held.Release(ctx) // until the session ends
	}
}
