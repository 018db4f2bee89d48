package launcher

import (
	"math/rand/v2"
	"time"
)

// backoff is how long something that failed is left alone: longer each time,
// with jitter, so that what failed together does not come back together.
type backoff struct {
	first, longest time.Duration
}

// after is the wait after so many failures in a row, from 1 on.
func (b backoff) after(failures int) time.Duration {
	wait := b.first
	for range failures - 1 {
		if wait *= 2; wait >= b.longest {
			wait = b.longest
			break
		}
	}
	return wait*3/4 + rand.N(wait/2+1)
}

// sleep waits for d, or for the end of a channel; it tells whether d went by.
func sleep(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
