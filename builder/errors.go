package builder

import "errors"

var (
	// errStale says that an action was no longer wanted when its lock was taken.
	errStale = errors.New("no longer wanted")
	// errTimeout is the cause of a build that took longer than build-timeout.
	errTimeout = errors.New("build-timeout exceeded")
	// errUploadTimeout is the cause of an upload that took longer than
	// image-upload-timeout.
	errUploadTimeout = errors.New("image-upload-timeout exceeded")
	// errHook says that a provider's post-upload-hook failed.
	errHook = errors.New("post-upload-hook failed")
	// errRemoved says that an image left the configuration meanwhile.
	errRemoved = errors.New("not in the configuration")
)
