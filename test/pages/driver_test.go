package pages

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// driverPage is where the steps to a new driver stand.
const driverPage = "docs/architecture.md"

// A new driver is its package, its configuration type and two lines: the page's blocks
// are put into a copy of the tree and nothing else is. What it would catch: a switch on
// the drivers' names anywhere (the driver is configured and not opened, or not built), a
// step that the page lacks, and a page whose code no longer fits the tables.
func TestANewDriver(t *testing.T) {
	t.Parallel()
	tree := filepath.Join(t.TempDir(), "a tree")
	copyTree(t, tree)
	lines := 0
	var config string
	for _, b := range blocksOf(t, driverPage) {
		b.Text = unindented(b.Text)
		switch b.Lang {
		case "go":
			writeNew(t, tree, b)
		case "diff":
			lines += addLines(t, tree, b)
		case "yaml":
			config = filepath.Join(t.TempDir(), "toy.yaml")
			if err := os.WriteFile(config, []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lines != 2 || config == "" {
		t.Fatalf("%s adds %d lines to tables, want 2; configuration %q", driverPage, lines, config)
	}
	program := filepath.Join(t.TempDir(), "poolkeeper")
	inTree(t, tree, "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/poolkeeper")
	if said := inTree(t, tree, program, "-c", config, "config-validate", "--strict"); !strings.Contains(said, "ok: 1 images, 1 providers, 1 labels") {
		t.Errorf("config-validate: %s", said)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), "boxes: 3", "boxes: 0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run(t, tree, program, "-c", wrong, "config-validate"); err == nil || !strings.Contains(said, "boxes") {
		t.Errorf("a wrong value of a key of its own: %v, %s", err, said)
	}
	inTree(t, tree, "go", "test", "-vet=off", "-count=1", "-ldflags=-s -w", "./providers/toy")
}

// blocksOf are the blocks of one page.
func blocksOf(t *testing.T, page string) []Block {
	t.Helper()
	blocks, err := Read(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// unindented is a block without the indentation of the list in which it stands.
func unindented(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(line, indent))
	}
	return strings.Join(lines, "")
}

// writeNew writes a Go block into the file that its first line names, which must be new.
func writeNew(t *testing.T, tree string, b Block) {
	t.Helper()
	first, text, _ := strings.Cut(b.Text, "\n")
	name, named := strings.CutPrefix(first, "// ")
	file := filepath.Join(tree, name)
	if _, err := os.Stat(file); !named || err == nil {
		t.Fatalf("%s:%d: %q is no new file", b.Page, b.Line, first)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addLines adds the lines of a diff block behind those that it shows, and returns how
// many are no imports.
func addLines(t *testing.T, tree string, b Block) (lines int) {
	t.Helper()
	first, text, _ := strings.Cut(b.Text, "\n")
	name, named := strings.CutPrefix(first, "--- ")
	var before, after strings.Builder
	for line := range strings.Lines(text) {
		if added, is := strings.CutPrefix(line, "+"); is {
			after.WriteString(added)
			if !regexp.MustCompile(`^\s*"[\w/]+"\s*$`).MatchString(added) {
				lines++
			}
			continue
		}
		before.WriteString(line[1:])
		after.WriteString(line[1:])
	}
	file := filepath.Join(tree, name)
	old, err := os.ReadFile(file)
	if err != nil || !named {
		t.Fatalf("%s:%d: %q: %v", b.Page, b.Line, first, err)
	}
	if n := strings.Count(string(old), before.String()); n != 1 || before.Len() == 0 {
		t.Fatalf("%s:%d: %s has what is shown %d times, want once", b.Page, b.Line, name, n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(old), before.String(), after.String(), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return lines
}

// copyTree copies what a build reads, of a clone or of a source archive.
func copyTree(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != top && strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "testdata", "test"}, d.Name())):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// inTree runs a program that must succeed.
func inTree(t *testing.T, tree, name string, args ...string) string {
	t.Helper()
	said, err := run(t, tree, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return said
}

// run runs a program in the tree. Go takes nothing from the network, and builds as make
// does: with -trimpath what is equal in both trees is compiled once.
func run(t *testing.T, tree, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOPROXY=off", "GOWORK=off")
	said, err := cmd.CombinedOutput()
	return string(said), err
}
