package docs

import (
	"path"
	"strings"
	"testing"
)

// A decision without its cost, or without what was rejected, and one that the index does not
// have fail here: the first convinces nobody, the second is found by nobody.
func TestDecisions(t *testing.T) {
	index := page(t, "docs/decisions/README.md").text
	pages := 0
	for _, f := range tree(t, ".md") {
		if path.Dir(f.path) != "docs/decisions" || path.Base(f.path) == "README.md" {
			continue
		}
		pages++
		if !strings.Contains(index, "("+path.Base(f.path)+")") {
			t.Errorf("docs/decisions/README.md does not list %s", f.path)
		}
		rest := f.text
		for _, heading := range []string{"\n## Context\n", "\n## Choice\n", "\n## Cost\n", "\n## Rejected\n"} {
			_, after, ok := strings.Cut(rest, heading)
			if !ok {
				t.Errorf("%s: no%s, or not in its place", f.path, strings.ReplaceAll(heading, "\n", " "))
			}
			rest = after
		}
	}
	if pages < 8 {
		t.Errorf("%d decisions", pages)
	}
}
