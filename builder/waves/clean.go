package waves

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// How long waves stay that are over, and how many of them. Those of image-build are
// counted apart, so that they drive no others out.
const (
	KeepFor       = 14 * 24 * time.Hour
	KeepMost      = 100
	KeepFollowFor = 24 * time.Hour
)

// clean removes waves that have been over for long, or of which there are many, and what
// an interrupted removal left. What is waited for stays.
func (d *Driver) clean(ctx context.Context, s *recipe.Session) {
	store := wave.NewStore(s)
	entries, err := store.Waves(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.Log.Warn("Cannot list waves to remove those that were over; it is tried again", "error", err)
		}
		return
	}
	removed := false
	for _, id := range old(entries, d.Now()) {
		err := store.Expire(ctx, id)
		switch {
		case err == nil:
			removed = true
			d.Log.Info("A wave that was over is removed", "wave", id)
		case errors.Is(err, zkmodel.ErrNotFound), errors.Is(err, recipe.ErrWaited), errors.Is(err, recipe.ErrLocked),
			errors.Is(err, wave.ErrNotOver), ctx.Err() != nil:
		default:
			d.Log.Warn("Cannot remove a wave that was over; it is tried again", "wave", id, "error", err)
		}
	}
	if removed {
		return // with a sweep each
	}
	if err := store.Queue().Sweep(ctx); err != nil && ctx.Err() == nil {
		d.Log.Warn("Cannot collect what is left of waves; it is tried again", "error", err)
	}
}

// old lists the waves that go: the oldest first.
func old(entries []*wave.Entry, now time.Time) []string {
	kind := func(follow bool) []*wave.Entry {
		return slices.DeleteFunc(slices.Clone(entries), func(e *wave.Entry) bool { return e.Broken != nil || e.Active() || e.Follow != follow })
	}
	return append(oldOf(kind(false), now, KeepFor), oldOf(kind(true), now, KeepFollowFor)...)
}

func oldOf(over []*wave.Entry, now time.Time, keep time.Duration) []string {
	ended := func(e *wave.Entry) time.Time {
		if e.Status.Ended == nil {
			return e.Stat.Ctime
		}
		return *e.Status.Ended
	}
	slices.SortFunc(over, func(a, b *wave.Entry) int { return ended(a).Compare(ended(b)) })
	var ids []string
	for i, e := range over {
		if len(over)-i > KeepMost || now.Sub(ended(e)) > keep {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
