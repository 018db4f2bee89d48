package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"poolkeeper/configs"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The configuration that the README shows is one that works.
func TestReadmeConfigurationIsValid(t *testing.T) {
	_, rest, _ := strings.Cut(readme(t), "```yaml\n")
	text, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("no configuration in README.md")
	}
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range cfg.DiskImages {
		for _, element := range image.Elements {
			if _, err := os.Stat(filepath.Join("../../elements", element)); err != nil {
				t.Errorf("image %s: %v", image.Name, err)
			}
		}
	}
}

// Its table of commands has all that there are, and no other.
func TestReadmeNamesEveryCommand(t *testing.T) {
	_, table, _ := strings.Cut(readme(t), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)(?:^\\| |, )`([a-z]+[a-z-]*)[^`]*`").FindAllStringSubmatch(table, -1) {
		told[m[1]] = true
	}
	parser, err := kong.New(&cli{}, kong.Vars{"version": ""}, kong.ExplicitGroups(groups))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		if told[command.Name] == command.Hidden {
			t.Errorf("%s: hidden %t, in README.md %t", command.Name, command.Hidden, told[command.Name])
		}
		delete(told, command.Name)
	}
	for name := range told {
		t.Errorf("README.md tells of %s, which is no command", name)
	}
}

// Its links, and those of the documentation, lead somewhere.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %v: %v", pages, err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// The tests and files that the page of answers names are there.
func TestBetterIsTrue(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/better.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		name := m[1]
		switch {
		case regexp.MustCompile(`^Test\w+$`).MatchString(name):
			named++
			if !tests[name] {
				t.Errorf("there is no %s", name)
			}
		case regexp.MustCompile(`^[a-z]+/[\w./-]+$`).MatchString(name):
			named++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		}
	}
	if named < 50 {
		t.Errorf("it names %d tests and files only", named)
	}
}
