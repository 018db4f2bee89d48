package openstack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"poolkeeper/providers"
)

// pace says how long calls may take and how they are repeated.
type pace struct {
	call     time.Duration // one try of one call, answer included
	first    time.Duration // wait before the second try; doubles
	longest  time.Duration // wait between two tries
	total    time.Duration // all tries of one call
	poll     time.Duration // between two looks at the servers
	patience time.Duration // how long a wait bears a cloud that does not answer
	hearing  time.Duration // how long a creation that was sent is heard after it was called off
}

func defaultPace() pace {
	return pace{
		call: time.Minute, first: 500 * time.Millisecond, longest: 8 * time.Second, total: time.Minute,
		poll: 500 * time.Millisecond, patience: 5 * time.Minute,
		hearing: 15 * time.Second,
	}
}

// repeat calls try until it succeeds, fails with a backoff.Permanent error, or
// the pace's time is over.
func repeat[T any](ctx context.Context, p pace, try func() (T, error)) (T, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = p.first, p.longest, 2
	return backoff.Retry(ctx, try, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(p.total))
}

// later is an error behind which the cloud asks us to wait.
type later struct {
	error
	wait error
}

// Unwrap shows the wait to package backoff.
func (l later) Unwrap() []error { return []error{l.error, l.wait} }

// again is the error of a try that is to be repeated, when the cloud wants.
func again(err error) error {
	if wait := providers.PauseOf(err); wait > 0 {
		return later{err, &backoff.RetryAfterError{Duration: wait}}
	}
	return err
}

// patience bears failures of the moment while something is awaited: a cloud
// whose API is down for a minute still makes the server that it has accepted.
type patience struct {
	limit time.Duration
	since time.Time // of the first failure in a row
}

// over returns why not to go on after err, or nil; an err of nil ends a row of
// failures. With the end of ctx nothing goes on, whether there was an error or not.
func (b *patience) over(ctx context.Context, now time.Time, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		b.since = time.Time{}
		return nil
	case !errors.Is(err, providers.ErrTransient):
		return err
	case b.since.IsZero():
		b.since = now
	}
	if now.Sub(b.since) < b.limit {
		return nil
	}
	return err
}

// pollAfter is how long to wait before the next look at something that has been
// awaited for a while. It is never so short that looking uses up the rate, nor
// that a cloud whose list of servers is long does little else than to tell it.
func (p *Provider) pollAfter(waited time.Duration) time.Duration {
	return max(p.pace.poll, 2*p.cfg.Rate, p.roster.cost(), min(waited/20, 5*time.Second))
}

// dispensableTime is how long an answer is awaited that nodes can be launched without.
const dispensableTime = 10 * time.Second

// dispensableKey marks the contexts of calls whose failure does not make the cloud unusable.
type dispensableKey struct{}

// dispensable is for calls whose answer is not needed: they end soon, and what fails is
// their caller's business alone.
func dispensable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, dispensableKey{}, true)
	return context.WithTimeoutCause(ctx, dispensableTime, fmt.Errorf("no answer within %s", dispensableTime))
}

func isDispensable(ctx context.Context) bool { return ctx.Value(dispensableKey{}) != nil }
