package control

import (
	"errors"
	"time"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/plan"
)

// retries is how long actions wait that could not be done: those that are not in the tree as failed builds; and uploads,
// whose records say when they are tried again, as a record may go. It is for one goroutine.
type retries map[string]*retry

type retry struct {
	failures int
	until    time.Time
}

// Who is held up by another's lock tries again soon; who has met an error takes
// longer.
func heldRetry() plan.Backoff { return plan.Backoff{First: 100 * time.Millisecond, Max: time.Minute} }
func failRetry() plan.Backoff { return plan.Backoff{First: time.Second, Max: 5 * time.Minute} }

// note takes over how an action ended, and reports whether that is worth a word.
func (r retries) note(key string, now time.Time, err error) (failed bool) {
	if err == nil || errors.Is(err, actions.ErrStale) {
		delete(r, key)
		return false
	}
	one := r[key]
	if one == nil {
		one = &retry{}
		r[key] = one
	}
	one.failures++
	wait := failRetry()
	held := actions.Held(err)
	if held {
		wait = heldRetry()
	}
	one.until = now.Add(wait.After(one.failures, key))
	return !held && !errors.Is(err, actions.ErrRecorded)
}

// ready splits actions into those that may start, and the time at which the
// first of the others may.
func (r retries) ready(actions []plan.Action, now time.Time) (ready []plan.Action, next time.Time) {
	for _, a := range actions {
		one := r[a.Key()]
		if one == nil || !now.Before(one.until) {
			ready = append(ready, a)
			continue
		}
		if next.IsZero() || one.until.Before(next) {
			next = one.until
		}
	}
	return ready, next
}
