package elements_test

import (
	"bytes"
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
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("snapshot-ready/files/snapshot-ready/wake")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("wake differs from wake.S; run elements/snapshot-ready/src/assemble: %v", err)
	}
}

// Without time, or without enough seed, the program fails, and changes nothing.
func TestWakeRefusesTooLittle(t *testing.T) {
	content, err := os.ReadFile("snapshot-ready/files/snapshot-ready/wake")
	if err != nil {
		t.Fatal(err)
	}
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
