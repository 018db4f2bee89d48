package chaos

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv says that this process has network and mounts of its own.
const insideEnv = "POOLKEEPER_CHAOS_INSIDE"

// inside runs root's test once more, in a network and with mounts of its own, and reports
// that it has: what is made of either is seen by nobody else, and goes with its last
// process, however that ends.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		// Names of namespaces are mounts below /run.
		if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
			t.Fatalf("mount /run: %v", err)
		}
		return false
	}
	if os.Geteuid() != 0 {
		return false
	}
	runtime.LockOSThread() // the child goes with the thread that started it
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	if err := cmd.Run(); err != nil {
		t.Errorf("in namespaces: %v", err)
	}
	return true
}
