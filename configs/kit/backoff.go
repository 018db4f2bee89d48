package kit

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// jitter is the part of a pause by which it may be shorter or longer, so that what
// failed together does not come back together.
const jitter = 0.25

// Backoff is how long something that failed is left alone: First after one failure,
// twice as long after each further one in a row, at most Longest; each give or take a
// quarter.
type Backoff struct {
	First, Longest time.Duration
}

// After is the pause after so many failures in a row, from 1 on.
func (b Backoff) After(failures int) time.Duration {
	pauses := backoff.ExponentialBackOff{
		InitialInterval: b.First, MaxInterval: b.Longest, Multiplier: 2, RandomizationFactor: jitter,
	}
	pause := pauses.NextBackOff()
	for range min(failures, 64) - 1 { // it is at its longest before
		pause = pauses.NextBackOff()
	}
	return pause
}
