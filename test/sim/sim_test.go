package sim

import (
	"testing"

	"poolkeeper/test/sim/series"
)

// Mistakes: whatever the judge knows to be wrong.
func TestLocks(t *testing.T) { series.Run(t, 10, run, demands()...) }
