package reference

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// firstLine is what editors with yaml-language-server look for.
var firstLine = regexp.MustCompile(`(?m)^    (# yaml-language-server: \$schema=(\S+))$`)

// The line that docs/configure.md shows for editors names a file that `make install` brings, and
// which knows the sample below that line. Catches a path that nobody installs.
func TestEditorsFindTheSchema(t *testing.T) {
	found := firstLine.FindStringSubmatch(string(content(t, "../../docs/configure.md")))
	if found == nil {
		t.Fatal("docs/configure.md shows no line for editors")
	}
	tree, root := t.TempDir(), t.TempDir()
	copied := func(from, to string, mode os.FileMode) {
		to = filepath.Join(tree, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content(t, from), mode); err != nil {
			t.Fatal(err)
		}
	}
	copied("../../Makefile", "Makefile", 0o644)
	copied("/bin/true", "bin/poolkeeper", 0o755) // which installs its elements
	names, err := filepath.Glob(filepath.Join(pages, "*.schema.json"))
	if err != nil || len(names) != len(schemas(t)) {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		copied(name, "docs/reference/"+filepath.Base(name), 0o644)
	}
	if said, err := exec.CommandContext(t.Context(), "make", "-C", tree, "install", "VERSION=x", "DESTDIR="+root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	file := filepath.Join(root, found[2])
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), filepath.Base(name))); err != nil {
			t.Error(err)
		}
	}
	s, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(t, s, []byte(found[1]+"\n"+string(content(t, filepath.Join(samples, "openstack.yaml"))))); err != nil {
		t.Error(err)
	}
	if err := judge(t, s, []byte(strings.Join([]string{found[1], "image-dir: /x"}, "\n"))); err == nil {
		t.Error("a misspelt key is not marked")
	}
}
