package builder

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// spaceEvery is how often a build's disk is looked at.
const spaceEvery = 2 * time.Second

// watchSpace ends a build's context before its disk is full, which would hurt
// more than this build.
func (l *loop) watchSpace(ctx context.Context, reserve int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if reserve > 0 {
		l.work.Go(func() {
			tick := time.NewTicker(spaceEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if free, err := l.images.Free(); err == nil && free < reserve {
					cancel(fmt.Errorf("%w: %s has %s left, build-disk-reserve is %s",
						errFull, l.images.Dir(), humanize.IBytes(uint64(max(free, 0))), humanize.IBytes(uint64(reserve))))
				}
			}
		})
	}
	return ctx, func() { cancel(nil) }
}
