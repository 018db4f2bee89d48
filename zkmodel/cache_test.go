package zkmodel

import (
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Catches a record that is shown as the one before it, since a restored ZooKeeper gave both
// the same number of a transaction.
func TestRecordOfARestoredTreeIsDecodedAnew(t *testing.T) {
	var c cache[string]
	for at, record := range []string{"before", "after"} {
		st := recipe.Stat{Czxid: 5, Mzxid: 7, Mtime: time.UnixMilli(int64(at))}
		if got := c.get("1", stampOf(st, false), func() string { return record }); got != record {
			t.Errorf("%q, want %q", got, record)
		}
	}
}
