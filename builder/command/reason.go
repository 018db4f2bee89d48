package command

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"

	"poolkeeper/builder/buildlog"
	"poolkeeper/builder/dib"
	"poolkeeper/builder/disk"
)

// exitError is the end of a command that failed.
type exitError struct {
	command string
	code    int
}

func (e *exitError) Error() string {
	if e.code > 128 && e.code < 128+65 {
		return fmt.Sprintf("%s was ended by signal %d (%s)", e.command, e.code-128, syscall.Signal(e.code-128))
	}
	return fmt.Sprintf("%s ended with exit code %d", e.command, e.code)
}

// withCause adds what a build's log says of why and where the command failed or,
// if we ended it, where it was.
func withCause(err error, log string) error {
	var exit *exitError
	failed := errors.As(err, &exit)
	if !failed && !errors.Is(err, dib.ErrStopped) {
		return err
	}
	cause, lerr := buildlog.FindCause(log)
	if lerr != nil {
		return err
	}
	if cause.Place != "" {
		err = fmt.Errorf("%w in %s", err, cause.Place)
	}
	if failed && cause.Line != "" {
		err = fmt.Errorf("%w: %s", err, cause.Line)
	}
	return err
}

// leastRoom is how much of images-dir is left, in bytes, if it is nearly full.
const leastRoom = 1 << 30

// withSpace names the file system that a failed build found full: that of images-dir if it is nearly full, or if the
// builder itself could not write there, else the image's own.
func withSpace(err error, tail string, images *disk.Images, reserve int64) error {
	ours := errors.Is(err, syscall.ENOSPC)
	if errors.Is(err, disk.ErrFull) || !ours && !strings.Contains(strings.ToLower(tail+err.Error()), syscall.ENOSPC.Error()) {
		return err
	}
	left := "unknown space"
	free, ferr := images.Free()
	if ferr == nil {
		left = humanize.IBytes(uint64(max(free, 0)))
	}
	if !ours && ferr == nil && free >= max(reserve, leastRoom) {
		return fmt.Errorf("%w (the file system of the image is full: set a larger DIB_IMAGE_SIZE, in GiB, in env-vars of the image; %s has %s left)", err, images.Dir(), left)
	}
	return fmt.Errorf("%w (%s has %s left): %w", disk.ErrFull, images.Dir(), left, err)
}
