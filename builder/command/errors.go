package command

import "errors"

var (
	// ErrTimeout is the cause of a build that took longer than build-timeout.
	ErrTimeout = errors.New("build-timeout exceeded")
	// ErrHook says that a provider's post-upload-hook failed.
	ErrHook = errors.New("post-upload-hook failed")
)
