package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// killGuest kills every process that has the guest's UUID on its command line:
// QEMU, or setsid just before it. Nothing that was written down earlier is
// trusted, for a process id may belong to another by now.
func killGuest(uuid string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && isGuest(pid, uuid) {
			failed = errors.Join(failed, killOne(pid, uuid))
		}
	}
	return failed
}

// killOne kills a process by a handle that cannot come to mean another one, so
// it looks at the command line after it has the handle.
func killOne(pid int, uuid string) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // closes the handle
	if !isGuest(pid, uuid) {
		return nil
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}

// isGuest looks for "-uuid UUID" among a process's arguments. A process that
// has ended has none.
func isGuest(pid int, uuid string) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(line, []byte("\x00-uuid\x00"+uuid+"\x00"))
}
