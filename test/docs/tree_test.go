package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the top of the tree, seen from here.
const root = "../.."

// file is a text file of the tree.
type file struct {
	path string // from the top, with slashes
	text string
}

// lineOf is the line of a place in the text, from 1.
func (f file) lineOf(at int) int { return 1 + strings.Count(f.text[:at], "\n") }

// readTree reads what people write: Go, pages, samples and scripts. What tools and
// tests make, and what tests read as data, is left out.
var readTree = sync.OnceValues(func() ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{".git", "bin", "testdata"}, d.Name()) || strings.HasPrefix(d.Name(), ".poolkeeper")):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".html"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		name, rerr := filepath.Rel(root, path)
		if rerr != nil {
			return rerr
		}
		files = append(files, file{filepath.ToSlash(name), string(text)})
		return err
	})
	return files, err
})

// tree is the files with one of some endings; all when there is none.
func tree(t *testing.T, endings ...string) []file {
	t.Helper()
	all, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	for _, f := range all {
		if len(endings) == 0 || slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f.path, e) }) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no files that end in %q", endings)
	}
	return files
}

// page is one file by its path.
func page(t *testing.T, path string) file {
	t.Helper()
	for _, f := range tree(t) {
		if f.path == path {
			return f
		}
	}
	t.Fatalf("there is no %s", path)
	return file{}
}

// there reports whether the tree has a file or folder.
func there(path string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
	return err == nil
}
