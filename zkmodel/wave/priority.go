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

// Waits reports whether images of a wave wait for a builder, so that a wave that comes after
// it asks for none; and whether it is over, or gone. One that is planned for later does
// not wait.
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
		return e.At == nil || !now.Before(*e.At), false, nil
	}
	return e.Status.State == Processing && e.Status.Waits, false, nil
}
