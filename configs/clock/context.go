package clock

import (
	"context"
	"time"
)

// key is that of a Clock in a context.
type key struct{}

// With is a context of an agent that goes by c, and so is all that is derived from it.
func With(ctx context.Context, c Clock) context.Context {
	if c == (Clock{}) {
		return ctx
	}
	return context.WithValue(ctx, key{}, c)
}

// Of is the Clock of the agent that ctx is of: the host's unless With has given it another.
func Of(ctx context.Context) Clock {
	c, _ := ctx.Value(key{}).(Clock)
	return c
}

// Now is time.Now by the clock of ctx, and so it is with the others.
func Now(ctx context.Context) time.Time { return Of(ctx).Now() }

// Since is time.Since.
func Since(ctx context.Context, t time.Time) time.Duration { return Of(ctx).Since(t) }

// Until is time.Until.
func Until(ctx context.Context, t time.Time) time.Duration { return Of(ctx).Until(t) }

// NewTimer is time.NewTimer.
func NewTimer(ctx context.Context, d time.Duration) *Timer { return Of(ctx).NewTimer(d) }

// NewTicker is time.NewTicker.
func NewTicker(ctx context.Context, every time.Duration) *Ticker { return Of(ctx).NewTicker(every) }

// After is time.After.
func After(ctx context.Context, d time.Duration) <-chan time.Time { return Of(ctx).After(d) }

// AfterFunc is time.AfterFunc.
func AfterFunc(ctx context.Context, d time.Duration, f func()) Stopper {
	return Of(ctx).AfterFunc(d, f)
}

// Sleep waits for d, or until ctx ends, whose cause it then returns.
func Sleep(ctx context.Context, d time.Duration) error { return Of(ctx).Sleep(ctx, d) }

// WithTimeout is context.WithTimeout.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return Of(ctx).WithTimeout(ctx, d)
}

// WithTimeoutCause is context.WithTimeoutCause.
func WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return Of(ctx).WithTimeoutCause(ctx, d, cause)
}
