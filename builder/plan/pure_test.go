package plan

import (
	"testing"

	"poolkeeper/test/pure"
)

// Decisions are functions of their input. One that read the clock, a file or the tree by
// itself would not be what Explain shows, and two builders would decide differently.
func TestDecisionsArePure(t *testing.T) { pure.Check(t) }
