package local

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/procfs"
)

// killGuest kills every process that has the guest's UUID on its command line:
// QEMU, or setsid just before it. Nothing that was written down earlier is
// trusted, for a process id may belong to another by now.
func killGuest(uuid string) error {
	all, err := procfs.AllProcs()
	if err != nil {
		return err
	}
	var failed error
	for _, p := range all {
		if isGuest(p, uuid) {
			failed = errors.Join(failed, killOne(p, uuid))
		}
	}
	return failed
}

// killOne kills a process by a handle that cannot come to mean another one, so
// it looks at the command line after it has the handle.
func killOne(p procfs.Proc, uuid string) error {
	process, err := os.FindProcess(p.PID)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // closes the handle
	if !isGuest(p, uuid) {
		return nil
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	return nil
}

// isGuest looks for "-uuid UUID" among a process's arguments. A process that
// has ended has none.
func isGuest(p procfs.Proc, uuid string) bool {
	words, err := p.CmdLine()
	at := slices.Index(words, "-uuid")
	return err == nil && at > 0 && at+1 < len(words) && words[at+1] == uuid
}
