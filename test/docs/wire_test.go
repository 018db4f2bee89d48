package docs

import (
	"regexp"
	"strings"
	"testing"
)

// A key that somebody adds to a record, or a path below /poolkeeper, without a word in
// docs/wire.md fails here.
func TestWireIsTold(t *testing.T) {
	wire := page(t, "docs/wire.md").text
	key := regexp.MustCompile("(?m)^\t[^/\n]*`wire:\"(\\w+)[,\"]")
	own := regexp.MustCompile(`OwnRoot \+ "(/[\w/-]+)`)
	keys, paths := 0, 0
	for _, f := range tree(t, ".go") {
		if !strings.HasPrefix(f.path, "zkmodel/") || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, at := range key.FindAllStringSubmatchIndex(f.text, -1) {
			keys++
			if one := f.text[at[2]:at[3]]; !strings.Contains(wire, "`"+one+"`") {
				t.Errorf("%s:%d: docs/wire.md does not tell of the key %s", f.path, f.lineOf(at[0]), one)
			}
		}
		for _, at := range own.FindAllStringSubmatchIndex(f.text, -1) {
			paths++
			one := "/poolkeeper" + strings.TrimSuffix(f.text[at[2]:at[3]], "/")
			if !regexp.MustCompile("`" + regexp.QuoteMeta(one) + "[/`]").MatchString(wire) {
				t.Errorf("%s:%d: docs/wire.md does not tell of %s", f.path, f.lineOf(at[0]), one)
			}
		}
	}
	if keys < 80 || paths < 15 {
		t.Errorf("%d keys and %d paths only: do the patterns still match?", keys, paths)
	}
}
