package inflight

import (
	"context"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
)

// cleanupTime is how long giving back what we hold may take at the end.
const cleanupTime = 5 * time.Second

// Cleanup is the context of what is done when ctx has ended: short, and over with the
// session.
func Cleanup(ctx context.Context, session *recipe.Session) (context.Context, context.CancelFunc) {
	short, cancel := clock.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	bound, unbind := session.Bind(short)
	return bound, func() { unbind(); cancel() }
}
