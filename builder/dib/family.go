package dib

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// family is a command and everything that descends from it, however it tried
// to get away: orphans come to us, the sub-reaper, and not to init.
type family struct {
	leader int
	exited chan syscall.WaitStatus // gives the leader's status once
	gone   chan struct{}           // closed when no descendant is left
}

// startFamily starts a command as the leader of its own process group. The
// leader is killed when we are.
//
// The calling process may have no other children: all are reaped here.
func startFamily(path string, spec guardSpec, output *os.File) (*family, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become sub-reaper: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	f := &family{exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent-death signal is of the thread that forks, so it must live.
		runtime.LockOSThread()
		var err error
		f.leader, err = syscall.ForkExec(path, spec.Argv, &syscall.ProcAttr{
			Dir:   spec.Dir,
			Env:   spec.Env,
			Files: []uintptr{null.Fd(), output.Fd(), output.Fd()},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		started <- err
		if err == nil {
			f.reap()
		}
		close(f.gone)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return f, nil
}

// reap waits for every child, the adopted ones too, until there is none.
func (f *family) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case pid == f.leader && (status.Exited() || status.Signaled()):
			f.exited <- status
		}
	}
}

// terminate asks the leader to end. Nobody else: disk-image-create takes its
// mounts down in its trap, with the help of the processes below it.
func (f *family) terminate(ctx context.Context) {
	_ = kill(ctx, f.leader, syscall.SIGTERM) // gone is as good
}

// killAll kills every descendant until none is left or the time is over, and
// tells whether none is.
func (f *family) killAll(ctx context.Context, patience time.Duration) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		_ = kill(ctx, -f.leader, syscall.SIGKILL)
		for _, pid := range descendants(os.Getpid()) {
			_ = kill(ctx, pid, syscall.SIGKILL)
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-f.gone:
			again.Stop()
			return true
		case <-deadline.C:
			again.Stop()
			return false
		case <-again.C:
		}
	}
}

// exitCode is a status as shells count.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
