package builder

import (
	"errors"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// retries is how long actions wait that could not be done: those that are not
// in the tree as failed builds or uploads. It is for one goroutine.
type retries map[string]*retry

type retry struct {
	failures int
	until    time.Time
}

// Who is held up by another's lock tries again soon; who has met an error takes
// longer.
func heldRetry() plan.Backoff { return plan.Backoff{First: 100 * time.Millisecond, Max: time.Minute} }
func failRetry() plan.Backoff { return plan.Backoff{First: time.Second, Max: 5 * time.Minute} }

// note takes over how an action ended, and tells whether that is worth a word.
func (r retries) note(key string, now time.Time, err error) (failed bool) {
	if err == nil || errors.Is(err, errStale) {
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
	held := isHeld(err)
	if held {
		wait = heldRetry()
	}
	one.until = now.Add(wait.After(one.failures, key))
	return !held
}

// isHeld tells whether somebody else is at it.
func isHeld(err error) bool {
	return errors.Is(err, recipe.ErrLocked) || errors.Is(err, zkmodel.ErrBusy) || errors.Is(err, zkmodel.ErrInProgress)
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
