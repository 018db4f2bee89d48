package recipe

import (
	"context"
	"errors"
	"time"
)

// Ahead measures how far the clock of the servers, which is that of every Stat, is
// ahead of now, in one write to the empty node at path, which is created when missing.
// It is wrong by at most margin: half of what the write took.
func Ahead(ctx context.Context, s *Session, path string, now func() time.Time) (ahead, margin time.Duration, err error) {
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
