package wave

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Above are the ids of the waves that come before one of a priority, over or not.
func (t *Tree) Above(priority Priority) []string {
	if !High.above(priority) {
		return nil
	}
	var ids []string
	t.View(func(v recipe.View) {
		for _, id := range v.Children(Root + "/requests") {
			var other struct {
				Priority Priority `json:"priority"`
			}
			if request, ok := v.Get(Root + "/requests/" + id); ok && json.Unmarshal(request.Data, &other) == nil && other.Priority.above(priority) {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// Standstill is how long a wave waits for one of a higher priority of which nothing changes.
const Standstill = 8 * time.Hour

// Waits reports whether images of a wave wait for a builder, so that a wave that comes after
// it asks for none; and whether it is over, or gone. One that is planned for later does
// not wait, nor does one that nobody begins for GiveUp, or that stands still.
func (st *Store) Waits(ctx context.Context, id string, now time.Time) (waits, over bool, err error) {
	e, err := st.Wave(ctx, id)
	switch {
	case isNotFound(err):
		return false, true, nil
	case err != nil:
		return false, false, fmt.Errorf("look at a wave of a higher priority: %w", err)
	case e.Broken != nil || !e.Active():
		return false, true, nil //nolint:nilerr // what is gone is over
	case e.Status.State == Pending:
		due := e.Stat.Ctime
		if e.At != nil {
			due = *e.At
		}
		return !now.Before(due) && now.Sub(due) < GiveUp, false, nil
	}
	return e.Status.State == Processing && e.Status.Waits && now.Sub(e.Changed) < Standstill, false, nil
}
