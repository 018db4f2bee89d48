package journey

import (
	"os/exec"
	"runtime"
)

// startBound starts a command whose Pdeathsig is to reach it when we die, however
// that comes: the signal is about the thread that has started it, so one thread
// lives as long as the command does. follow runs beside it and waits for its end.
func startBound(cmd *exec.Cmd, follow func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			follow()
		}
	}()
	return <-started
}
