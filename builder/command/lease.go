package command

import (
	"context"
	"errors"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Session is what bounds the life of a command.
type Session interface {
	Context() context.Context // ends with the session
	Left() time.Duration      // for how long it surely lives
	Timeout() time.Duration
}

// leaseOf lets a build go on for as long as our session surely lives, less a
// margin, so that its last process has ended before another builder can begin.
func leaseOf(s Session) func() time.Duration {
	return func() time.Duration {
		if s.Context().Err() != nil {
			return 0
		}
		return s.Left() - leaseMargin(s.Timeout())
	}
}

// leaseMargin is what a guard on a busy machine may take longer than its lease to
// end a build. A short session allows no more: it is renewed three times in its
// time-out, and what is left then is what a build may be unheard.
func leaseMargin(timeout time.Duration) time.Duration {
	return min(max(timeout/5, 200*time.Millisecond), 2*time.Second)
}

// lostLock reports whether others may do by now what we were about.
func lostLock(cause error) bool {
	return errors.Is(cause, recipe.ErrSessionLost) || errors.Is(cause, recipe.ErrFenceLost)
}
