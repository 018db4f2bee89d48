package real

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Mistakes: one that is planted is looked for by no world, so that nothing proves that it would be found; a world
// looks for one that nobody has planted; the page of tests does not tell of one.
func TestPlantedMistakesAreLookedFor(t *testing.T) {
	made := named(t, root, regexp.MustCompile(`planted\.Bug\("(\w+)"\)`), func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
	sought := named(t, "..", regexp.MustCompile(`(?m)^\t"(\w+)": +"`), func(path string) bool { return filepath.Base(path) == "planted_test.go" })
	if len(made) < 8 || !slices.Equal(made, sought) {
		t.Errorf("planted are %v, and worlds look for %v", made, sought)
	}
	page, err := os.ReadFile(root + "/docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range made {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/testing.md does not tell of %s", name)
		}
	}
}

// named are the names that a pattern finds in some files below a folder, sorted.
func named(t *testing.T, below string, pattern *regexp.Regexp, in func(path string) bool) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(below, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || !in(path) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range pattern.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}
