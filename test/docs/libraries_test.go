package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	required = regexp.MustCompile(`(?m)^\t([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`) // indirect ones have a remark
	major    = regexp.MustCompile(`(/v[0-9]+|\.v[0-9]+)$`)
)

// A library that is taken and not in the list, so that nobody has said why; one that the
// list has and nothing uses; a file that is said to be ours and is not there.
func TestLibraries(t *testing.T) {
	const name = "docs/decisions/libraries.md"
	text := page(t, name).text
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	choice, rest, _ := strings.Cut(text, "## What is ours, and why")
	ours, _, _ := strings.Cut(rest, "## Cost")
	var known []string
	for _, m := range required.FindAllStringSubmatch(string(module), -1) {
		library := strings.TrimPrefix(major.ReplaceAllString(m[1], ""), "github.com/")
		known = append(known, library)
		if !strings.Contains(choice, "`"+library) {
			t.Errorf("%s does not say why %s is used", name, m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z0-9.-]+(/[a-z0-9.-]+)+)`").FindAllStringSubmatch(choice, -1) {
		_, err := os.Stat(filepath.Join(root, m[1]))
		if listed := strings.Contains(strings.Join(known, "\n")+"\n", strings.TrimSuffix(major.ReplaceAllString(m[1], ""), "/")+"\n"); !listed && err != nil {
			t.Errorf("%s has %s, which go.mod does not", name, m[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \| [^|]{20,}\|$`).FindAllStringSubmatch(ours, -1)
	for _, row := range rows {
		for _, place := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if _, err := os.Stat(filepath.Join(root, place[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(known) < 25 || len(rows) < 20 {
		t.Errorf("%d libraries and %d rows: go.mod or the tables are read no more", len(known), len(rows))
	}
}
