package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// What dev prints can be typed as it stands: the program's name only where a shell
// finds this very program by it.
func TestProgramName(t *testing.T) {
	us, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	installed, other, none := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Symlink(us, filepath.Join(installed, "poolkeeper")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "poolkeeper"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{installed: "poolkeeper", other: us, none: us} {
		t.Setenv("PATH", path)
		if got := programName(); got != want {
			t.Errorf("with PATH=%s: %s, want %s", path, got, want)
		}
	}
}
