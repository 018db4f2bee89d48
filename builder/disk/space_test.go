package disk

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// The reserve ends a build before the disk is full, and holds back one that has not
// begun. Catches: a build that goes on until nothing on this host can write.
func TestSpaceBelowTheReserve(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.CheckSpace(1 << 62); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "build-disk-reserve is 4.0 EiB") {
		t.Errorf("before a build: %v", err)
	}
	ctx, stop := d.WatchSpace(t.Context(), 1<<62)
	defer stop()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("nobody looks")
	}
	if why := context.Cause(ctx); !errors.Is(why, ErrFull) || !strings.Contains(why.Error(), "build-disk-reserve is 4.0 EiB") {
		t.Errorf("cause %v", why)
	}
}

// Without a reserve, or with room to spare, a build goes on until it ends by itself.
// Catches: a check that compares the wrong way round.
func TestSpaceAboveTheReserve(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for _, reserve := range []int64{0, 1} {
		if err := d.CheckSpace(reserve); err != nil {
			t.Errorf("a reserve of %d: %v", reserve, err)
		}
		ctx, stop := d.WatchSpace(t.Context(), reserve)
		select {
		case <-ctx.Done():
			t.Errorf("a reserve of %d: %v", reserve, context.Cause(ctx))
		case <-time.After(spaceEvery + time.Second/2):
		}
		stop()
	}
}
