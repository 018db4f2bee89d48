package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fuzzTargets are those of the tree, as "./PACKAGE NAME".
func fuzzTargets(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, f := range tree(t, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func (Fuzz[A-Z]\w*)\(\w+ \*testing\.F\)`).FindAllStringSubmatch(f.text, -1) {
			list = append(list, "./"+path.Dir(f.path)+" "+m[1])
		}
	}
	slices.Sort(list)
	return list
}

// A fuzz target that `make fuzz` does not run, and one that docs/testing.md does not tell of, or
// tells of and is gone, fail here.
func TestFuzzTargets(t *testing.T) {
	want := fuzzTargets(t)
	if len(want) < 20 {
		t.Fatalf("%d targets: does the pattern still match?", len(want))
	}
	list := exec.CommandContext(t.Context(), "scripts/fuzz", "--list")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	run := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(run)
	if !slices.Equal(run, want) {
		t.Errorf("scripts/fuzz runs\n%q\nthe tree has\n%q", run, want)
	}
	_, told, _ := strings.Cut(page(t, "docs/testing.md").text, "## Fuzzing")
	var named []string
	for _, row := range regexp.MustCompile("`(\\./[\\w/]+)`: ((?:`Fuzz\\w+`(?:, )?)+)").FindAllStringSubmatch(told, -1) {
		for _, m := range regexp.MustCompile("`(Fuzz\\w+)`").FindAllStringSubmatch(row[2], -1) {
			named = append(named, row[1]+" "+m[1])
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("docs/testing.md tells of\n%q\nthe tree has\n%q", named, want)
	}
}

// A target of the Makefile that tests or measures, and of which docs/testing.md says neither what it is
// nor how long it takes, fails here.
func TestTargetsThatTestAreTold(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(makefile), "##@ While changing something")
	text, _, _ = strings.Cut(text, "# The tools have their own requirements")
	told, found := page(t, "docs/testing.md").text, 0
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(text, -1) {
		if m[1] == "fmt" {
			continue
		}
		found++
		if !regexp.MustCompile("(?m)^\\| `make " + m[1] + "` \\| [^|]+ \\| [^|]*(min|s|minutes|h)\\b[^|]* \\| [^|]+ \\|$").MatchString(told) {
			t.Errorf("docs/testing.md has no row of `make %s`: what, how long, how to repeat a failure", m[1])
		}
	}
	if found < 6 {
		t.Errorf("%d targets: does the pattern still match?", found)
	}
}
