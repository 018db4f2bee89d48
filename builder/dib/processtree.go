//go:build linux

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

// processTree is a command and everything that descends from it, however it tried
// to get away: orphans come to us, the sub-reaper, and not to init.
type processTree struct {
	leader int
	exited chan syscall.WaitStatus // gives the leader's status once
	gone   chan struct{}           // closed when no descendant is left
}

// child is a command to start.
type child struct {
	path      string
	argv, env []string
	dir       string
	files     []uintptr      // its descriptors from 0 on
	onDeath   syscall.Signal // what it gets when we die
}

// startTree starts a command as the leader of its own process group.
//
// The calling process may have no other children: all are reaped here.
func startTree(c child) (*processTree, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become sub-reaper: %w", err)
	}
	t := &processTree{exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent-death signal is of the thread that forks, so it must live.
		runtime.LockOSThread()
		var err error
		t.leader, err = syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{
			Dir: c.dir, Env: c.env, Files: c.files,
			Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.onDeath},
		})
		started <- err
		if err == nil {
			t.reap()
		}
		close(t.gone)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.path, err)
	}
	return t, nil
}

// startBuild starts the command of a build, which is killed when we are.
func startBuild(path string, spec guardSpec, output *os.File) (*processTree, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	return startTree(child{
		path: path, argv: spec.Argv, env: spec.Env, dir: spec.Dir,
		files: []uintptr{null.Fd(), output.Fd(), output.Fd()}, onDeath: syscall.SIGKILL,
	})
}

// reap waits for every child, the adopted ones too, until there is none.
func (t *processTree) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case pid == t.leader && (status.Exited() || status.Signaled()):
			t.exited <- status
		}
	}
}

// terminate asks the leader to end. Nobody else: disk-image-create takes its
// mounts down in its trap, with the help of the processes below it.
func (t *processTree) terminate(ctx context.Context) {
	_ = kill(ctx, t.leader, syscall.SIGTERM) // gone is as good
}

// reapTime is ample for the kernel to say that no child is left.
const reapTime = time.Millisecond

// killAll kills every descendant until none is left or the time is over, and
// reports whether none is.
func (t *processTree) killAll(ctx context.Context, patience time.Duration) bool {
	// Most builds leave nobody behind. Who reaps needs a moment to hear so, and a look through
	// all processes of the host takes longer.
	soon := time.NewTimer(reapTime)
	defer soon.Stop()
	select {
	case <-t.gone:
		return true
	case <-soon.C:
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		_ = kill(ctx, -t.leader, syscall.SIGKILL)
		for _, pid := range descendants(os.Getpid(), processes()) {
			_ = kill(ctx, pid, syscall.SIGKILL)
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-t.gone:
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
