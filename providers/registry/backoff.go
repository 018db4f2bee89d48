package registry

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// A provider that cannot be opened is tried again after a second, then after twice as
// long each time, and at least once a minute; about, so that the launchers of a site do
// not all ask a cloud at once.
const (
	firstRetry   = time.Second
	longestRetry = time.Minute
	spread       = 0.25
)

func newBackOff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = firstRetry, longestRetry
	b.Multiplier, b.RandomizationFactor = 2, spread
	b.Reset()
	return b
}
