package builders

import (
	"testing"

	"poolkeeper/test/sim/series"
)

// Mistakes: whatever the judge knows to be wrong.
func TestBuilders(t *testing.T) { series.Run(t, 3, run, demands()...) }
