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

// withSpace says so when a build failed because its disk was full.
func withSpace(err error, tail string, images *disk.Images) error {
	if errors.Is(err, disk.ErrFull) {
		return err
	}
	if !strings.Contains(tail, syscall.ENOSPC.Error()) && !strings.Contains(tail, "No space left on device") && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	left := "unknown"
	if free, ferr := images.Free(); ferr == nil {
		left = humanize.IBytes(uint64(max(free, 0)))
	}
	return fmt.Errorf("%w (%s has %s left): %w", disk.ErrFull, images.Dir(), left, err)
}
