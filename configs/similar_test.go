package configs

import (
	"fmt"
	"strings"
	"testing"
)

// Mistakes: a list of 200 names for a misspelt one, without the one that was meant; a
// suggestion for what is like nothing; words on names where there are none.
func TestSimilar(t *testing.T) {
	var many []string
	for n := range 200 {
		many = append(many, fmt.Sprintf("image-%03d", n))
	}
	for name, tc := range map[string]struct {
		name  string
		known []string
		want  string
	}{
		"none":          {"north", nil, ""},
		"near":          {"nroth", []string{"south", "north", "north"}, ` (did you mean "north"?); these are: north, south`},
		"first word":    {"ubuntu", []string{"ubuntu-noble", "debian-12"}, ` (did you mean "ubuntu-noble"?); these are: debian-12, ubuntu-noble`},
		"like nothing":  {"windows", []string{"south", "north"}, "; these are: north, south"},
		"as it is long": {strings.Repeat("x", 300), []string{"south"}, "; these are: south"},
	} {
		if got := Similar(tc.name, tc.known); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	got := Similar("imag-150", many)
	if !strings.Contains(got, `did you mean "image-150"?`) || !strings.HasSuffix(got, " and 190 more") || strings.Count(got, ",") != 9 {
		t.Errorf("of 200: %q", got)
	}
}
