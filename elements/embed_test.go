package elements_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/elements"
)

// What is extracted is this folder, permissions included: nobody has to name a
// new element anywhere.
func TestExtractedAsInTheFolder(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own", "root.d")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again over itself
		if err := elements.Extract(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("an element of the operator's own: %v", err)
	}
	count := 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(name, "/") {
			return err
		}
		count++
		want, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs", name)
		}
		if here, there := executable(t, name), executable(t, filepath.Join(dir, name)); here != there {
			t.Errorf("%s: executable %t, want %t", name, there, here)
		}
		return nil
	})
	if err != nil || count < 20 {
		t.Fatalf("compared %d files: %v", count, err)
	}
}

func executable(t *testing.T, name string) bool {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o111 != 0
}

func TestRefreshesWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "files-only", "root.d", "10-files-only")
	if err := elements.Extract(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := elements.Extract(dir); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(script)
	if err != nil || string(content) == "old" || !executable(t, script) {
		t.Errorf("script after a second extraction: %.20q, %v", content, err)
	}
}

func TestExtractSaysWhereItFailed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := elements.Extract(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("extract into a file: %v", err)
	}
}
