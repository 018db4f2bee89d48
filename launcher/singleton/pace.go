package singleton

import (
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/providers"
)

const (
	// firstHurry and longHurry are how long it takes until they are asked for again
	// while a request waits for room: longer each time.
	firstHurry = 2 * time.Second
	longHurry  = 30 * time.Second
)

// asking paces how often a provider is asked for its limits.
type asking struct {
	last     time.Time // when it was asked
	hurried  int       // how often in a row before they were old
	failures int       // in a row
}

// note is what became of a question.
func (a *asking) note(now time.Time, err error) {
	switch {
	case now.Sub(a.last) >= providers.LimitsAge:
		a.hurried = 0
	case now.Sub(a.last) > 2*longHurry: // nobody was in a hurry for a while
		a.hurried = 1
	default:
		a.hurried++
	}
	if a.failures++; err == nil {
		a.failures = 0
	}
	a.last = now
}

// after is how long after the last question the next one comes.
func (a *asking) after(hurry bool) time.Duration {
	switch {
	case a.failures > 0:
		return kit.Backoff{First: time.Second, Longest: time.Minute}.After(a.failures)
	case !hurry:
		return providers.LimitsAge
	}
	pause := firstHurry
	for range a.hurried {
		if pause *= 2; pause >= longHurry {
			return longHurry
		}
	}
	return pause
}
