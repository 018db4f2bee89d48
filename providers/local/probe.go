package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// probeTime is how long a boot that takes a tenth of a second may take.
	probeTime = 2500 * time.Millisecond
	// reapTime is how long a killed QEMU may take to go. One that hangs in the
	// kernel may never go, and is not waited for.
	reapTime = 500 * time.Millisecond
	// debugPort is where the boot sector writes debugCode, which makes QEMU
	// end with the exit status debugCode*2+1.
	debugPort, debugCode = 0xf4, 0x10
)

// bootProbe boots a machine that does nothing but end QEMU with a status that
// nothing else gives.
func bootProbe(ctx context.Context, qemu, accel, dir string, limit time.Duration) error {
	disk, err := probeDisk(dir)
	if err != nil {
		return err
	}
	defer disk.Close() //nolint:errcheck // has no name, nobody misses it
	var said bytes.Buffer
	cmd := command(ctx, dir, qemu, "-name", "probe", "-nodefaults", "-no-user-config", "-display", "none",
		"-accel", accel, "-m", "16", "-drive", "format=raw,if=ide,file=/proc/self/fd/3",
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=4", debugPort))
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.ExtraFiles = []*os.File{disk} // descriptor 3
	cmd.WaitDelay = reapTime          // if others hold its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = runBriefly(cmd, limit)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == debugCode*2+1:
		return nil
	case err == nil:
		return errors.New("the machine ended before it ran")
	case exit != nil:
		return fmt.Errorf("%w: %s", err, lastLines(said.Bytes()))
	}
	return err
}

// probeDisk makes the disk of the probe. It has no name any more when it is
// used, so that a crash leaves none.
func probeDisk(dir string) (*os.File, error) {
	disk, err := os.CreateTemp(dir, "probe-*.raw")
	if err != nil {
		return nil, err
	}
	_, err = disk.Write(probeSector())
	if err := errors.Join(err, os.Remove(disk.Name())); err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	return disk, nil
}

// runBriefly runs a command that has a limit, and comes back in any case. The
// words of a command that failed are part of the error.
func runBriefly(cmd *exec.Cmd, limit time.Duration) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	}
	hung := fmt.Errorf("it hung for %s", limit)
	if err := cmd.Cancel(); err != nil {
		return errors.Join(hung, err)
	}
	timer.Reset(reapTime)
	select {
	case err := <-ended:
		return fmt.Errorf("%w: %w", hung, err)
	case <-timer.C:
		return fmt.Errorf("%w, was killed, but does not go", hung)
	}
}

// probeSector is a boot sector of five instructions, and room after it, for
// QEMU wants a disk of more than one sector.
func probeSector() []byte {
	disk := make([]byte, 8*512)
	copy(disk, []byte{
		0xb0, debugCode, // mov al, debugCode
		0xe6, debugPort, // out debugPort, al
		0xf4,       // hlt
		0xeb, 0xfd, // jmp to the hlt
	})
	disk[510], disk[511] = 0x55, 0xaa // the mark of a boot sector
	return disk
}
