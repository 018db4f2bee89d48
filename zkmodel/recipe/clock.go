package recipe

import (
	"context"
	"errors"
	"time"
)

// With a goodMargin a measurement of the clock is taken as it is; one that took longer is
// made again, measurements times in all, and the best counts: the first after servers were
// away may have waited for them.
const (
	goodMargin   = 50 * time.Millisecond
	measurements = 3
)

// Ahead measures how far the clock of the servers, which is that of every Stat, is
// ahead of now, by writes to the empty node at path, which is created when missing.
// It is wrong by at most margin: half of what the quickest write took.
func Ahead(ctx context.Context, s *Session, path string, now func() time.Time) (ahead, margin time.Duration, err error) {
	for range measurements {
		a, m, err := measure(ctx, s, path, now)
		if err != nil {
			return 0, 0, err
		}
		if margin == 0 || m < margin {
			ahead, margin = a, m
		}
		if margin <= goodMargin {
			break
		}
	}
	return ahead, margin, nil
}

// measure is one measurement.
func measure(ctx context.Context, s *Session, path string, now func() time.Time) (ahead, margin time.Duration, err error) {
	for {
		before := now()
		stat, err := s.Set(ctx, path, nil, AnyVersion)
		half := now().Sub(before) / 2
		switch {
		case err == nil:
			return stat.Mtime.Sub(before.Add(half)), half + time.Millisecond, nil
		case errors.Is(err, ErrNoNode):
			err = s.EnsurePath(ctx, path)
		case errors.Is(err, ErrConnectionLost):
			err = nil // once more does no harm
		}
		if err != nil {
			return 0, 0, err
		}
	}
}
