package elements_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"poolkeeper/test/lacks"
)

// The program is what its source says: 64 bits, and nothing beside it.
func TestWakeIsMadeOfItsSource(t *testing.T) {
	for _, program := range []string{"as", "ld"} {
		if _, err := exec.LookPath(program); err != nil {
			lacks.Skip(t, "no binutils: %v", err)
		}
	}
	made := filepath.Join(t.TempDir(), "wake")
	if out, err := exec.CommandContext(t.Context(), "snapshot-ready/src/assemble", made).CombinedOutput(); err != nil {
		t.Fatalf("assemble: %v: %s", err, out)
	}
	if !bytes.Equal(unzipped(t, shippedWake), unzipped(t, made)) {
		t.Error("wake.gz differs from wake.S; run elements/snapshot-ready/src/assemble")
	}
}

const shippedWake = "snapshot-ready/files/snapshot-ready/wake.gz"

// unzipped returns the content of a file that gzip has compressed.
func unzipped(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Without time, or without enough seed, the program fails, and changes nothing.
func TestWakeRefusesTooLittle(t *testing.T) {
	content := unzipped(t, shippedWake)
	program := filepath.Join(t.TempDir(), "wake")
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = bytes.NewReader(make([]byte, 15)) // less than a time, so the clock is not touched
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("it ended with %v", err)
	}
}
