package openstack

import (
	"context"
	"errors"
	"time"

	"poolkeeper/providers"
)

// pollAfter is how long to wait before the next look at something that has been
// awaited for a while. It is never so short that looking uses up the rate.
func (p *Provider) pollAfter(waited time.Duration) time.Duration {
	return max(p.pace.poll, 2*p.cfg.Rate, min(waited/20, 5*time.Second))
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// patience bears failures of the moment while something is awaited: a cloud
// whose API is down for a minute still makes the server that it has accepted.
type patience struct {
	limit time.Duration
	since time.Time // of the first failure in a row
}

// with tells whether to go on after err; nil ends a row of failures.
func (b *patience) with(now time.Time, err error) bool {
	switch {
	case err == nil:
		b.since = time.Time{}
		return true
	case !errors.Is(err, providers.ErrTransient):
		return false
	case b.since.IsZero():
		b.since = now
	}
	return now.Sub(b.since) < b.limit
}
