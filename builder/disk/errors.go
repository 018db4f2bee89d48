package disk

import "errors"

var (
	// ErrInUse says that another builder works in the same folder.
	ErrInUse = errors.New("folder is in use by another builder")
	// ErrChecksum says that a file is not what its checksums promise.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrNoFile says that a build has no file of the format on this host.
	ErrNoFile = errors.New("no such image file here")
)
