package disk

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/configs/clock"
)

// spaceEvery is how often a build's disk is looked at.
const spaceEvery = 2 * time.Second

// CheckSpace returns ErrFull when less than reserve bytes are left.
func (d *Images) CheckSpace(reserve int64) error {
	free, err := d.Free()
	if err != nil {
		return err
	}
	if free < reserve {
		return d.full(free, reserve)
	}
	return nil
}

// WatchSpace ends a build's context with ErrFull before the disk is full, which would
// hurt more than this build. The caller calls stop when the build is over.
func (d *Images) WatchSpace(ctx context.Context, reserve int64) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	if reserve > 0 {
		watcher.Go(func() {
			tick := clock.NewTicker(ctx, spaceEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if free, err := d.Free(); err == nil && free < reserve {
					cancel(d.full(free, reserve))
				}
			}
		})
	}
	return ctx, func() {
		cancel(nil)
		watcher.Wait()
	}
}

func (d *Images) full(free, reserve int64) error {
	return fmt.Errorf("%w: %s has %s left, build-disk-reserve is %s", ErrFull, d.dir,
		humanize.IBytes(uint64(max(free, 0))), humanize.IBytes(uint64(reserve)))
}

// Probe reports whether files can be made where builds are noted and their images lie.
func (d *Images) Probe() error {
	for _, dir := range []string{d.dir, filepath.Join(d.dir, ownDir)} {
		if err := Writable(dir); err != nil {
			return err
		}
	}
	return nil
}
