package leak

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/configs/planted"
)

// findingLasts is how old a finding may be that no search has confirmed since; one
// that is older is none.
const findingLasts = time.Hour

// View is what is seen of the tree; a zkmodel.Mirror.
type View interface {
	// Barrier returns once the View shows all that was committed before the call.
	Barrier(ctx context.Context) error
	// Unread is nil if all at and below a path could be read.
	Unread(path string) error
}

// List lists what is in a cloud so that it may be compared with the records below
// root in the view. Records are made before what they stand for, so the view, which
// catches up after the listing, has the record of all that was listed and ever had
// one. kind is what is listed, for errors.
//
// Errors: those of list and of the view; recipe.ErrUnread while part of the records
// cannot be read.
func List[T any](ctx context.Context, kind string, list func(context.Context) ([]T, error), view View, root string) ([]T, error) {
	things, err := list(ctx)
	if err != nil {
		return nil, err
	}
	if planted.Bug("stale") {
		return things, nil
	}
	if err := view.Barrier(ctx); err != nil {
		return nil, err
	}
	if err := view.Unread(root); err != nil {
		return nil, fmt.Errorf("%s without a record cannot be told from others: %w", kind, err)
	}
	return things, nil
}

// Confirm takes together what a search found to have no record, by its id, and what
// the searches before it found, with the time since when. It returns that of both what
// is to be remembered, and what is proven: found by an earlier search too, at least age
// ago. A search that fails has all findings forgotten, by whoever keeps them.
func Confirm[T any](
	found []T, id func(T) string, before map[string]time.Time, now time.Time, age time.Duration,
) (kept map[string]time.Time, proven []T) {
	kept = map[string]time.Time{}
	for _, thing := range found {
		first, seen := before[id(thing)]
		if past := now.Sub(first); !seen || past < 0 || past > max(findingLasts, 3*age) {
			first, seen = now, false
		}
		kept[id(thing)] = first
		if seen && now.Sub(first) >= age || planted.Bug("stale") {
			proven = append(proven, thing)
		}
	}
	return kept, proven
}
