package actions

import "errors"

var (
	// ErrStale says that an action was no longer wanted when its lock was taken.
	ErrStale = errors.New("no longer wanted")
	// ErrRecorded says that an upload failed, and that its record says so.
	ErrRecorded = errors.New("it failed, as its record says")
	// ErrCancelled is the cause of a build that an operator has cancelled.
	ErrCancelled = errors.New("cancelled by an operator")
	// ErrDeleted is the cause of a build or an upload whose record was removed or marked
	// for deletion while the work was running.
	ErrDeleted = errors.New("its record was removed or marked for deletion")
	// errUploadTimeout is the cause of an upload that took longer than
	// image-upload-timeout.
	errUploadTimeout = errors.New("image-upload-timeout exceeded")
	// errRemoved says that an image left the configuration meanwhile.
	errRemoved = errors.New("not in the configuration")
)
