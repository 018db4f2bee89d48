package aws

import (
	"crypto/sha256"
	"testing"
)

// What a snapshot has already is not sent: as its parent has it or, where it is not encrypted, empty. An encrypted snapshot
// that is larger than its parent has noise behind that.
func TestBlocksThatASnapshotLacks(t *testing.T) {
	full := sha256.Sum256([]byte("full"))
	parent := &blocks{Snapshot: "snap-1", Volume: 1, Sums: [][sha256.Size]byte{zeroSum(), full}}
	for name, c := range map[string]struct {
		before    *blocks
		encrypted bool
		zero      []int32 // the blocks that are sent of an empty image
		full      []int32 // and of one that is full
	}{
		"no parent":               {&blocks{}, false, nil, []int32{0, 1, 2}},
		"encrypted, no parent":    {&blocks{}, true, []int32{0, 1, 2}, []int32{0, 1, 2}},
		"a parent":                {parent, false, []int32{1}, []int32{0, 2}},
		"encrypted, and a parent": {parent, true, []int32{1, 2}, []int32{0, 2}},
	} {
		w := &blockWriter{before: c.before, now: &blocks{Volume: 2}, encrypted: c.encrypted}
		for sum, want := range map[[sha256.Size]byte][]int32{zeroSum(): c.zero, full: c.full} {
			var got []int32
			for index := range int32(3) {
				if w.lacks(index, sum) {
					got = append(got, index)
				}
			}
			if len(got) != len(want) || len(got) > 0 && got[len(got)-1] != want[len(want)-1] {
				t.Errorf("%s: %v lack, want %v", name, got, want)
			}
		}
		if rest := w.rest(); c.encrypted != (rest == 4096) {
			t.Errorf("%s: %d blocks have to be there", name, rest)
		}
	}
}
