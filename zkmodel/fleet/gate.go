package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/recipe"
)

// gatePatience is how long decisions wait for a push, and how long the gate waits for the
// version that was pushed to be taken: whatever becomes of either, work goes on.
const gatePatience = 10 * time.Second

// Gate has the decisions of one daemon stand under the read side of the fleet's lock, so that
// none is under way anywhere while a version is switched, and none is made by the old one after
// it. The lock is held from one push to the next and given back between two decisions when a
// writer stands in line: a decision costs no round trip. It is for order, not for safety: who
// cannot have it goes on without it after gatePatience. A nil Gate is always open.
type Gate struct {
	who      string
	agent    *Agent
	log      hclog.Logger
	patience time.Duration

	mu      sync.Mutex
	open    bool
	since   time.Time     // when it was closed last; zero before the first Enter
	told    bool          // the log has said, since then, that decisions go on
	inside  int           // decisions that are under way
	changed chan struct{} // closed when open or inside changes to what is waited for
}

// NewGate makes the gate of a daemon, which who names to those that push. It is closed, but
// for patience, until Run has the lock.
func NewGate(who string, agent *Agent, log hclog.Logger) *Gate {
	return &Gate{who: who, agent: agent, log: log, patience: gatePatience, changed: make(chan struct{})}
}

// Enter begins a decision, as soon as one may be made, or ctx ends; leave is called at its
// end. A decision must not begin another one.
func (g *Gate) Enter(ctx context.Context) (leave func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		g.since = clock.Now(ctx)
	}
	for !g.open && ctx.Err() == nil {
		left := g.patience - clock.Since(ctx, g.since)
		if left <= 0 {
			if !g.told {
				g.told = true
				g.log.Warn("Decisions go on without the fleet's lock: a push holds it, or ZooKeeper does not give it", "waited", g.patience)
			}
			break
		}
		changed := g.changed
		g.mu.Unlock()
		late := clock.NewTimer(ctx, left)
		select {
		case <-changed:
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
		g.mu.Lock()
	}
	g.inside++
	return g.leave
}

// leave ends a decision.
func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && !g.open {
		g.wake()
	}
}

// wake wakes all that wait for a change. The mutex is held.
func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// let opens the gate.
func (g *Gate) let() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	g.wake()
}

// shut closes the gate and returns when no decision is under way, or ctx has ended.
func (g *Gate) shut(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		g.open, g.told, g.since = false, false, clock.Now(ctx)
	}
	for g.inside > 0 && ctx.Err() == nil {
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

// gateBackoff is between tries for a lock that ZooKeeper refuses.
var gateBackoff = kit.Backoff{First: 100 * time.Millisecond, Longest: 10 * time.Second}

// Run opens and closes the gate until ctx ends, over as many sessions as that takes.
func (g *Gate) Run(ctx context.Context, c *recipe.Client) error {
	return c.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		for failures := 0; ; {
			err := g.hold(ctx, s)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				failures = 0
				continue
			}
			if failures++; failures == 1 {
				g.log.Warn("Cannot take the fleet's lock; decisions go on without it, and it is tried again", "error", err)
			}
			g.let()
			if err := clock.Sleep(ctx, gateBackoff.After(failures)); err != nil {
				return err
			}
		}
	})
}

// hold has the lock until a writer stands in line, and opens the gate meanwhile.
func (g *Gate) hold(ctx context.Context, s *recipe.Session) error {
	g.shut(ctx)
	held, err := recipe.NewReadLock(s, DecisionsPath, g.who, recipe.EnsureParents()).Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Release(context.WithoutCancel(ctx)) }() // until the session ends
	if err := g.catchUp(ctx, s); err != nil {
		return err
	}
	g.let()
	err = held.Rival(ctx)
	g.shut(ctx)
	if errors.Is(err, recipe.ErrFenceLost) {
		return nil // it was removed: once more
	}
	return err
}

// catchUp returns when what is current is known to run here, or to be refused. What cannot be
// read is not waited for.
func (g *Gate) catchUp(ctx context.Context, s *recipe.Session) error {
	v, err := NewStore(s).Current(ctx)
	switch {
	case err == nil:
		g.mu.Lock()
		patience := g.patience
		g.mu.Unlock()
		waiting, cancel := clock.WithTimeout(ctx, patience)
		defer cancel()
		g.agent.await(waiting, v.ID())
		return nil
	case errors.Is(err, ErrNone) || errors.Is(err, ErrUndecodable) || recipe.Unreadable(err):
		return nil
	}
	return err
}
