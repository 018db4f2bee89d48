package schedule

import (
	"testing"

	"poolkeeper/test/pure"
)

// Decisions are functions of the snapshot. A decision that reads the clock, a file or the
// tree by itself could not be repeated in a simulation, and two launchers with one
// snapshot would decide differently.
func TestDecisionsArePure(t *testing.T) { pure.Check(t) }
