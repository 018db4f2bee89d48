package journey

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// sleeper starts a process that has to do with dir in one way, and ends it.
func sleeper(t *testing.T, change func(*exec.Cmd)) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
	change(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func TestCheckNothingLeftFindsProcesses(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(*exec.Cmd){
		"environment": func(c *exec.Cmd) { c.Env = append(os.Environ(), "TMP_DIR="+dir+"/tmp") },
		"folder":      func(c *exec.Cmd) { c.Dir = dir },
		"argument":    func(c *exec.Cmd) { c.Args[0] = dir + "/sleep" },
	} {
		t.Run(name, func(t *testing.T) {
			stop := sleeper(t, change)
			short, cancel := context.WithCancel(t.Context())
			cancel() // no grace: it will not go
			err := CheckNothingLeft(short, dir)
			if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "sleep 600") {
				t.Errorf("with a process: %v", err)
			}
			stop()
			if err := CheckNothingLeft(t.Context(), dir); err != nil {
				t.Errorf("without: %v", err)
			}
		})
	}
}

func TestCheckNothingLeftWaitsAMoment(t *testing.T) {
	dir := t.TempDir()
	stop := sleeper(t, func(c *exec.Cmd) { c.Dir = dir })
	done := make(chan error)
	go func() { done <- CheckNothingLeft(t.Context(), dir) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestProcessesByName(t *testing.T) {
	dir := t.TempDir()
	sleeper(t, func(c *exec.Cmd) { c.Dir = dir })
	for name, want := range map[string]int{"": 1, "sleep": 1, "qemu-system": 0} {
		found, err := processes(dir, name)
		if err != nil || len(found) != want {
			t.Errorf("processes %q: %v, %v, want %d", name, found, err, want)
		}
	}
}

// Everything is mounted on something: the root of the test's own file system
// stands for a mount that is left.
func TestMountsAreFound(t *testing.T) {
	found, err := mounts("/proc")
	if err != nil || len(found) == 0 {
		t.Errorf("mounts below /proc: %v, %v", found, err)
	}
	if found, err = mounts(t.TempDir()); err != nil || len(found) != 0 {
		t.Errorf("mounts in an empty folder: %v, %v", found, err)
	}
}
