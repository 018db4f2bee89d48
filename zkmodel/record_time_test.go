package zkmodel_test

import (
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
	if got := zkmodel.NoLater(zkmodel.EpochOf(written), recipe.Stat{}); !got.Equal(written) {
		t.Errorf("without a stat: %s", got)
	}
}
