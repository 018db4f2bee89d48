package recipe

import (
	"context"
	"errors"
)

// Ltime returns a logical time: the transaction of a write to the empty node at
// path, which is created when missing. All that was committed before the call
// is older, so a Tree for which WaitFor returned, in whatever process, shows it.
func Ltime(ctx context.Context, s *Session, path string) (int64, error) {
	for {
		stat, err := s.Set(ctx, path, nil, AnyVersion)
		switch {
		case err == nil:
			return stat.Mzxid, nil
		case errors.Is(err, ErrNoNode):
			err = s.EnsurePath(ctx, path)
		case errors.Is(err, ErrConnectionLost):
			err = nil // once more does no harm
		}
		if err != nil {
			return 0, err
		}
	}
}
