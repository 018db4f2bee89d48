package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// memory is what a group may have, in KiB: the tests of some mutants never stop to fill it.
const memory = 4 << 20

// alive is a pipe that shows our own end: who reads it gets nothing until then, as nobody closes or writes it.
var alive = sync.OnceValues(func() (ends [2]*os.File, err error) {
	ends[0], ends[1], err = os.Pipe()
	return ends, err
})

// group is a command that ends with all that it starts: by its context, by endGroup, and with us, also where we are killed.
// Some tests start themselves again.
func group(ctx context.Context, program string, args ...string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -v %d; (read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec "$0" "$@" 3<&-`, memory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, program}, args...)...)
	ends, err := alive()
	if err != nil {
		cmd.Err = fmt.Errorf("begin a group: %w", err)
	}
	cmd.ExtraFiles = []*os.File{ends[0]}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endGroup(cmd) }
	cmd.WaitDelay = time.Second
	return cmd
}

// endGroup ends all that a command has started.
func endGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil // it was not started
	}
	return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
