package recipe

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Election makes one of many processes the leader: the holder of a lock, as in
// kazoo's Election recipe.
type Election struct {
	client     *Client
	dir        string
	identifier string
}

// NewElection returns the election in dir, created when missing with its parents.
// Nodepool's identifier is "<host>-<pid>".
func NewElection(c *Client, dir, identifier string) *Election {
	return &Election{client: c, dir: dir, identifier: identifier}
}

// Run stands for election and calls lead whenever it is won. The context of lead
// ends when leadership is lost, which is given up when lead returns. Run returns
// what lead returns while it leads; after a lost leadership it stands again,
// until ctx ends or the Client is closed.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, h *Held) error) error {
	return e.client.Serve(ctx, func(ctx context.Context, s *Session) error {
		for {
			if led, err := e.once(ctx, s, lead); led || err != nil {
				return err
			}
		}
	})
}

// once wins the election and leads; it returns false if leadership was lost.
func (e *Election) once(ctx context.Context, s *Session, lead func(context.Context, *Held) error) (bool, error) {
	held, err := NewLock(s, e.dir, e.identifier, EnsureParents()).Acquire(ctx)
	if err != nil {
		return false, err
	}
	bound, cancel := held.Bind(ctx)
	err = lead(bound, held)
	cancel()
	lost := errors.Is(held.cause(), ErrFenceLost)
	if rerr := held.Release(ctx); err == nil && !lost {
		err = rerr
	}
	if lost {
		return false, ctx.Err()
	}
	return true, err
}

// Periodic is a task that one process of many does, again and again.
type Periodic struct {
	// Every is the pause between the end of one run and the start of the next.
	Every time.Duration
	// Task does the work. Its context ends when leadership is lost; its writes
	// should go through the lock that it is given.
	Task func(ctx context.Context, h *Held) error
	// Logger receives the errors of Task, which is run again all the same; nil discards them.
	Logger hclog.Logger
}

// Lead does the task at once, and then every so often, until ctx ends. It is for
// Election.Run to call.
func (p Periodic) Lead(ctx context.Context, h *Held) error {
	timer := h.session.Clock().NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := p.Task(ctx, h); err != nil && ctx.Err() == nil && p.Logger != nil {
			p.Logger.Warn("Periodic task failed; it is tried again", "error", err, "retry", p.Every)
		}
		timer.Reset(p.Every)
	}
}
