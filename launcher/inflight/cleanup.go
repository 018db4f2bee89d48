package inflight

import (
	"context"
	"time"

	"poolkeeper/configs/clock"
)

// Binder ends contexts with something: a recipe.Session.
type Binder interface {
	Bind(ctx context.Context) (context.Context, context.CancelFunc)
}

// cleanupTime is how long giving back what we hold may take at the end.
const cleanupTime = 5 * time.Second

// Cleanup is the context of what is done when ctx has ended: short, and over with the
// session.
func Cleanup(ctx context.Context, session Binder) (context.Context, context.CancelFunc) {
	short, cancel := clock.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	bound, unbind := session.Bind(short)
	return bound, func() { unbind(); cancel() }
}
