package journey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A home where nothing can be written is not for diskimage-builder.
func TestHomeOfTheEnvironment(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\necho \"HOME is $HOME.\"\necho '" + readyLine + "'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, good := t.TempDir(), t.TempDir()
	for home, want := range map[string]string{good: good, "/dev/null/home": dir} {
		t.Setenv("HOME", home)
		d, err := startDev(t.Context(), program, dir)
		if d == nil {
			t.Fatal(err)
		}
		<-d.exited
		said, err := os.ReadFile(logFile(dir))
		if err != nil || !strings.Contains(string(said), "HOME is "+want+".\n") {
			t.Errorf("with HOME=%s the program says %q, %v", home, said, err)
		}
	}
	if left, err := filepath.Glob(good + "/.cache/*"); err != nil || len(left) > 0 {
		t.Errorf("left in the home: %v, %v", left, err)
	}
}
