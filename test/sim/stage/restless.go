package stage

import (
	"slices"
	"time"
)

// Restless knows who takes one lock time and again: what is not to be done now has to rest for a while. The zero
// value is ready to use; it is for one goroutine at a time.
type Restless struct{ tries map[string][]time.Time }

// A process may stand in line for one lock MostTries times within Watched.
const (
	MostTries = 30
	Watched   = 10 * time.Second
)

// Again notes that a client stands in line for a lock, and reports whether it does so too often.
func (r *Restless) Again(client, lock string) bool {
	if r.tries == nil {
		r.tries = map[string][]time.Time{}
	}
	key, now := client+" "+lock, time.Now()
	late := slices.DeleteFunc(append(r.tries[key], now), func(at time.Time) bool { return now.Sub(at) > Watched })
	r.tries[key] = late
	return len(late) > MostTries
}
