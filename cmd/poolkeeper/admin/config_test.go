package admin

import (
	"testing"

	"poolkeeper/zkmodel/fleet"
)

// A version that ran elsewhere under a higher number is not one that everybody runs.
func TestWhoIsBehind(t *testing.T) {
	v := &fleet.Version{Number: 3}
	for name, c := range map[string]struct {
		member     fleet.Member
		superseded bool
		lines      int
		refused    bool
	}{
		"runs it":                        {fleet.Member{Number: 3, ID: v.ID()}, false, 0, false},
		"runs another 3":                 {fleet.Member{Number: 3, ID: "x"}, false, 1, false},
		"restored tree: runs 5":          {fleet.Member{Number: 5, ID: "x"}, false, 1, false},
		"runs 5 and refuses 3":           {fleet.Member{Number: 5, ID: "x", Refused: 3, Reason: "older"}, false, 1, true},
		"a later one was pushed":         {fleet.Member{Number: 4, ID: "x"}, true, 0, false},
		"behind, a later one was pushed": {fleet.Member{Number: 2, ID: "x"}, true, 1, false},
	} {
		lines, refused := behind([]fleet.Member{c.member}, v, c.superseded)
		if len(lines) != c.lines || refused != c.refused {
			t.Errorf("%s: %q, %v", name, lines, refused)
		}
	}
}
