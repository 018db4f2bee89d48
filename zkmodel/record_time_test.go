package zkmodel_test

import (
	"math"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A record cannot have its state from later than it was written.
func TestNoLater(t *testing.T) {
	written := time.Unix(1_800_000_000, 0)
	for told, want := range map[time.Time]time.Time{
		written.Add(10 * 365 * 24 * time.Hour): written,
		written.Add(-time.Hour):                written.Add(-time.Hour),
	} {
		if got := zkmodel.NoLater(zkmodel.EpochOf(told), recipe.Stat{Mtime: written}); !got.Equal(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, silent := range []zkmodel.Epoch{0, -1, 1, 9e8, 1e300, zkmodel.Epoch(math.NaN())} {
		if got := zkmodel.NoLater(silent, recipe.Stat{Mtime: written}); !got.Equal(written) {
			t.Errorf("%v: %s", silent, got)
		}
	}
	if got := zkmodel.NoLater(zkmodel.EpochOf(written), recipe.Stat{}); !got.Equal(written) {
		t.Errorf("without a stat: %s", got)
	}
}
