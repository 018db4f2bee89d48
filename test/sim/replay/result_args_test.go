package replay

import (
	"slices"
	"testing"
)

// Mistake: who repeats a run without faults, as it is told, starts its program with other arguments: another run.
func TestNoFaultsAreOneArgument(t *testing.T) {
	w := Worlds[0]
	none, told := Run{Seed: 1, Only: []int{}}.args(w), Run{Seed: 1, Only: []int{0}}.args(w)
	if !slices.Equal(none, told) {
		t.Errorf("%q and %q", none, told)
	}
}

// Mistake: when faults are taken away, the run in which none is left has them all.
func TestNoFaultsAreNotAll(t *testing.T) {
	w := Worlds[0]
	var none []int
	if args := (Run{Seed: 1, Only: exactly(none)}).args(w); !slices.Contains(args, "-sim.only=0") {
		t.Errorf("%q", args)
	}
}
