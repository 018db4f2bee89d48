package bootable

import (
	"testing"

	"poolkeeper/test/pure"
)

// Mistake: what nodes boot from depends on more than the tree, and two launchers that
// see the same images boot different ones.
func TestChoiceIsPure(t *testing.T) { pure.Check(t) }
