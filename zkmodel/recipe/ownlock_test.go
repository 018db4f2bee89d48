package recipe_test

import (
	"context"
	"fmt"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// Who deletes a record with the lock that the work is bound to has done so: the
// end of that lock is no loss. Catches: a watch that fires before the answer of
// the transaction arrives ends the work's context, and a deletion that was done
// counts as failed.
func TestDeletionOfTheOwnLockIsNoLoss(t *testing.T) {
	s := session(t, dial(t, zktest.Root(t)))
	for n := range 300 {
		record := fmt.Sprintf("/records/%d", n)
		must(t, s.EnsurePath(t.Context(), record))
		held, err := recipe.NewLock(s, record+"/lock", "").Try(t.Context())
		must(t, err)
		ctx, unbind := held.Bind(t.Context())
		if err := held.DeleteTree(ctx, record); err != nil {
			t.Fatalf("deletion %d: %v", n, err)
		}
		want(t, context.Cause(held.Context()), recipe.ErrReleased)
		unbind()
	}
}
