package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// maxDeletes is how many nodes one transaction of a DeleteTree removes.
const maxDeletes = 500

// DeleteTree removes the node at path and all below it; a node that is not
// there is no error. The node itself goes in one transaction with the last that
// is below it, so that nobody sees it half deleted: until then all that was in
// it stays in reach of who repeats the call. A contender that enters a lock
// below path in the meantime makes the transaction fail and is removed by the next.
func (s *Session) DeleteTree(ctx context.Context, path string) error {
	return deleteTree(ctx, s, path, "", s.Multi, nil)
}

// deleteTree removes the tree at path by transactions of multi. The node last,
// which keeps the fence of multi, goes in the final one, with also.
func deleteTree(ctx context.Context, s *Session, path, last string, multi func(context.Context, ...Op) ([]OpResult, error), also []Op) error {
	if path == "/" {
		return fmt.Errorf("delete tree /: %w", ErrBadPath)
	}
	for {
		ops, err := deletions(ctx, s, path, last, nil)
		if err != nil {
			return err
		}
		for len(ops) > 0 && err == nil {
			n := (len(ops)-1)%maxDeletes + 1 // the final transaction is a full one
			batch := ops[:n:n]
			if ops = ops[n:]; len(ops) == 0 {
				batch = append(batch, also...)
			}
			_, err = multi(ctx, batch...)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrNotEmpty), errors.Is(err, ErrNoNode), errors.Is(err, ErrConnectionLost):
			// Somebody added or removed a node below, or it is not known what happened: look again.
		default:
			return err
		}
	}
}

// deletions appends to ops what deletes path and all below it, the deepest
// first, and what leads to last behind all else.
func deletions(ctx context.Context, s *Session, path, last string, ops []Op) ([]Op, error) {
	names, err := s.Children(ctx, path)
	if errors.Is(err, ErrNoNode) {
		return ops, nil
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(rank(path, a, last), rank(path, b, last))
	})
	for _, name := range names {
		if ops, err = deletions(ctx, s, joinPath(path, name), last, ops); err != nil {
			return nil, err
		}
	}
	return append(ops, OpDelete(path, AnyVersion)), nil
}

// rank is 1 for the child of path that leads to last, and 0 for all others.
func rank(path, name, last string) int {
	if within(joinPath(path, name), last) {
		return 1
	}
	return 0
}
