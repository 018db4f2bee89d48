package replay

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// Native is a world as a program of this machine.
type Native struct {
	World

	file, dir string
}

// Run runs it. A simulation that fails is no error. When ctx ends, what was done until then is there, and the cause.
//
// Two programs with a thread each take half of the processor time that one with two takes: in a
// bubble mostly one goroutine can run, and the other threads only look for work. The library makes
// 1.5 MB for each session, which is cheap only if garbage is not looked for that often.
func (n Native) Run(ctx context.Context, r Run) (Result, error) {
	cmd := exec.CommandContext(ctx, n.file, r.args(n.World)...)
	cmd.Dir = n.dir
	cmd.Env = append(append(os.Environ(), "GOMAXPROCS=1", "GOGC=1500", "GOMEMLIMIT=1500MiB"), r.Env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		found := partial(out)
		found.CPU = used(cmd)
		return found, context.Cause(ctx)
	}
	exit := new(exec.ExitError)
	if err != nil && !errors.As(err, &exit) {
		return Result{}, err
	}
	found, broken := result(out, err)
	found.CPU = used(cmd)
	return found, broken
}

func used(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil { // it was not begun
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
