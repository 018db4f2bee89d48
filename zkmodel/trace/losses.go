package trace

import (
	"errors"
	"sync"
	"time"
)

// sayEvery is how often it is told at most that spans are lost.
const sayEvery = 10 * time.Minute

// Counts is what became of spans since the begin of the process.
type Counts struct {
	Sent    uint64
	Refused uint64 // not taken by the collector
	Dropped uint64 // not tried: too many waited
}

func (c Counts) lost() uint64 { return c.Refused + c.Dropped }

// losses counts what was sent and lost, and tells of it.
type losses struct {
	told func(lost int, why error)

	mu     sync.Mutex
	count  Counts
	last   error     // why they were lost last
	losing bool      // since the last that was sent, and it was told
	untold int       // lost since it was told
	said   time.Time // when it was
}

// sent counts spans that the collector has taken, but for what it has refused.
func (l *losses) sent(spans int, err error) {
	refused := 0
	if err != nil {
		refused = refusedOf(err, spans)
	}
	l.mu.Lock()
	l.count.Sent += uint64(spans - refused) //nolint:gosec // refused is not more
	again := refused == 0 && l.losing
	untold := l.untold
	if again {
		l.losing, l.untold = false, 0
	}
	l.mu.Unlock()
	if again {
		l.told(untold, nil)
	}
	if refused > 0 {
		l.lost(0, refused, err)
	}
}

// lost counts spans that are lost, and tells of it, if that was not done a short time ago.
func (l *losses) lost(dropped, refused int, why error) {
	l.mu.Lock()
	l.count.Dropped += uint64(dropped) //nolint:gosec // not negative
	l.count.Refused += uint64(refused) //nolint:gosec // not negative
	l.last = why
	l.untold += dropped + refused
	now, untold := time.Now(), l.untold
	say := l.said.IsZero() || now.Sub(l.said) >= sayEvery
	if say {
		l.losing, l.untold, l.said = true, 0, now
	}
	l.mu.Unlock()
	if say {
		l.told(untold, why)
	}
}

func (l *losses) counted() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *losses) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// refusedOf is how many spans of a batch were not taken.
func refusedOf(err error, spans int) int {
	if partly, ok := errors.AsType[*partialError](err); ok {
		return min(partly.rejected, spans)
	}
	return spans
}
