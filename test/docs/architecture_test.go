package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// picture are the packages that docs/architecture.md draws, by their folders.
func picture(t *testing.T) []string {
	t.Helper()
	_, drawn, _ := strings.Cut(page(t, "docs/architecture.md").text, "```\n")
	drawn, _, _ = strings.Cut(drawn, "```")
	var folders []string
	line := regexp.MustCompile(`(?m)^(?: floor \d| {8}) +([a-z]+(?:/[a-z]+)?)(?: \(([a-z ]+)\))?(?:  |$)`)
	for _, m := range line.FindAllStringSubmatch(drawn, -1) {
		folders = append(folders, m[1])
		for name := range strings.FieldsSeq(m[2]) {
			folders = append(folders, m[1]+"/"+name)
		}
	}
	if len(folders) < 10 {
		t.Fatalf("docs/architecture.md draws %q only", folders)
	}
	return folders
}

// A package that is new or gone and not drawn fails here: the picture would send a
// newcomer to the wrong place.
func TestPictureIsTrue(t *testing.T) {
	drawn := picture(t)
	for _, folder := range drawn {
		if !there(folder) {
			t.Errorf("docs/architecture.md draws %s, which is not there", folder)
		}
	}
	for _, top := range []string{"cmd/poolkeeper", "builder", "launcher", "web", "providers", "zkmodel", "configs"} {
		entries, err := os.ReadDir(filepath.Join(root, top))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := top + "/" + e.Name()
			if files, err := filepath.Glob(filepath.Join(root, name, "*.go")); err != nil || len(files) == 0 {
				continue // no package
			}
			if !slices.Contains(drawn, name) {
				t.Errorf("docs/architecture.md does not draw %s", name)
			}
		}
	}
}
