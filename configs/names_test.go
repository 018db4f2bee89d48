package configs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{
		"debian", "ubuntu-22.04", "x_y", "openEuler-22-03-LTS", "two words", "ünïcode", "a:b", "locker", "a.b",
		strings.Repeat("x", 200),
	} {
		if err := CheckName("image", good); err != nil {
			t.Errorf("CheckName(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "a/b", "..", "../x", "a..b", ".", ".x", "-x", "--help", "lock", " x", "x ", "a\nb", "a\x00b",
		"a\x7fb", "a\u2028b", "a\ue000b", "a\ufffdb", "\xff", strings.Repeat("x", 201),
	} {
		err := CheckName("image", bad)
		if !errors.Is(err, ErrName) {
			t.Errorf("CheckName(%q) = %v, want ErrName", bad, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("CheckName(%q) does not say it in one line: %q", bad, err)
		}
	}
}

func TestClosest(t *testing.T) {
	keys := []string{"flavor-name", "diskimage", "cloud-image", "min-ram", "name", "networks"}
	for key, want := range map[string]string{
		"flavour": "flavor-name", "flavor_name": "flavor-name", "disk-image": "diskimage", "Name": "name",
		"minram": "min-ram", "nmae": "name", "mni-ram": "min-ram", //nolint:misspell // on purpose
		"network": "networks", "zzz": "", "": "", "x": "", "knetwors": "networks",
		strings.Repeat("name", 100): "",
	} {
		if got := closest(key, keys); got != want {
			t.Errorf("closest(%q) = %q, want %q", key, got, want)
		}
	}
}

// Mistakes: two neighbours that changed places are two slips, and no name of five letters is
// suggested for them, as with the library alone; a letter is as many slips as it has bytes.
func TestOneSlipCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		right := rapid.SliceOfN(rapid.RuneFrom([]rune("abcé-1ß")), 2, 20).Draw(t, "name")
		at := rapid.IntRange(0, len(right)-2).Draw(t, "at")
		other := rapid.RuneFrom([]rune("xyzü9")).Draw(t, "letter")
		exchanged := slices.Clone(right)
		exchanged[at], exchanged[at+1] = exchanged[at+1], exchanged[at]
		for what, slip := range map[string][]rune{
			"exchanged": exchanged,
			"left out":  slices.Delete(slices.Clone(right), at, at+1),
			"put in":    slices.Insert(slices.Clone(right), at, other),
			"changed":   slices.Replace(slices.Clone(right), at, at+1, other),
		} {
			want := 1
			if slices.Equal(slip, right) {
				want = 0
			}
			if got := distance(string(slip), string(right)); got != want {
				t.Fatalf("%s: %q from %q: %d", what, string(slip), string(right), got)
			}
		}
	})
	if got := distance("ba-cd", "ab-dc"); got < 2 {
		t.Errorf("two slips are %d", got)
	}
}
