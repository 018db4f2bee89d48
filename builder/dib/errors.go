package dib

import "errors"

var (
	// ErrCommand says that the image's dib-cmd cannot be run: not found, not
	// executable, or quoted wrongly.
	ErrCommand = errors.New("cannot run dib-cmd")
	// ErrStopped says that the run was ended before the command was done.
	ErrStopped = errors.New("build stopped")
	// ErrGuard says that the guard process failed, and the command with it.
	ErrGuard = errors.New("build guard failed")
	// ErrLeft says that something of a build could not be removed.
	ErrLeft = errors.New("left behind")
)
