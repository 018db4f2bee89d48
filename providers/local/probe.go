package local

import (
	"bytes"
	"context"
	_ "embed" // the payload
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// probeTime is how long the race may take, and reapTime how long a killed QEMU
	// may take to go: three seconds together. One that hangs in the kernel may
	// never go, and is not waited for.
	probeTime = 2500 * time.Millisecond
	reapTime  = 500 * time.Millisecond
	// debugPort is where the payload writes debugCode at its end, which makes QEMU
	// end with the exit status debugCode*2+1.
	debugPort, debugCode = 0xf4, 0x10
)

// payload is the disk of the probe, made by payload/assemble of payload/payload.S:
// a machine that does in small what a kernel does while it starts.
//
//go:embed payload/payload.bin
var payload []byte

// bootProbe boots the payload. It returns no error when that came to its end before
// ctx did; otherwise also what QEMU said.
func bootProbe(ctx context.Context, qemu, accel, dir string) (said string, err error) {
	disk, err := probeDisk(dir)
	if err != nil {
		return "", err
	}
	defer disk.Close() //nolint:errcheck // has no name, nobody misses it
	var output bytes.Buffer
	cmd := command(ctx, dir, qemu, "-name", "probe", "-nodefaults", "-no-user-config", "-display", "none",
		"-accel", accel, "-cpu", processor(accel), "-m", "64", "-drive", "format=raw,if=ide,file=/proc/self/fd/3",
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=4", debugPort))
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.ExtraFiles = []*os.File{disk} // descriptor 3
	cmd.WaitDelay = reapTime / 2      // if others hold its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	gone, err := runBriefly(ctx, cmd)
	if !gone {
		return "", err
	}
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case exit != nil && exit.ExitCode() == debugCode*2+1:
		return "", nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil:
		err = errors.New("the machine ended before it was done")
	}
	return decisive(output.Bytes()), err
}

// probeDisk makes the disk of the probe. It has no name any more when it is
// used, so that a crash leaves none.
func probeDisk(dir string) (*os.File, error) {
	disk, err := os.CreateTemp(dir, "probe-*.raw")
	if err != nil {
		return nil, err
	}
	_, err = disk.Write(payload)
	if err := errors.Join(err, os.Remove(disk.Name())); err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	return disk, nil
}

// runBriefly runs a command that is killed when ctx ends, and comes back in any
// case. It reports whether the command is gone.
func runBriefly(ctx context.Context, cmd *exec.Cmd) (gone bool, err error) {
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return true, err
	case <-ctx.Done(): // cmd is killed by its own look at ctx
	}
	timer := time.NewTimer(reapTime)
	defer timer.Stop()
	select {
	case err := <-ended:
		return true, err
	case <-timer.C:
		return false, fmt.Errorf("%w: QEMU was killed, but does not go", context.Cause(ctx))
	}
}
