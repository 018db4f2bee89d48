package clock

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is context.WithTimeout.
func (c Clock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is context.WithTimeoutCause.
func (c Clock) WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c.source == nil {
		return context.WithTimeoutCause(parent, d, cause)
	}
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	bound, end := context.WithCancelCause(parent)
	ctx := &deadline{Context: bound, at: c.Now().Add(d), cause: cause, done: make(chan struct{})}
	context.AfterFunc(bound, ctx.over)
	timer := c.AfterFunc(d, func() { end(cause) })
	return ctx, func() {
		timer.Stop()
		end(context.Canceled)
		ctx.over()
	}
}

// deadline is a context that ends at a time by a Source. The one that it embeds ends with it, and
// knows the cause; but all that was derived from that would take a deadline for a cancellation.
type deadline struct {
	context.Context
	at    time.Time
	cause error
	done  chan struct{}
	once  sync.Once
}

func (d *deadline) over() { d.once.Do(func() { close(d.done) }) }

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *deadline) Err() error {
	err := d.Context.Err()
	if err != nil && context.Cause(d.Context) == d.cause { //nolint:errorlint // it is this very one
		return context.DeadlineExceeded
	}
	return err
}

// AfterFunc saves package context a goroutine for each context that is derived from this one.
func (d *deadline) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.Context, f) }
