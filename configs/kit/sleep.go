package kit

import (
	"context"
	"time"
)

// Sleep waits for d, which may be 0 or less. It returns the cause of ctx's end when
// that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
