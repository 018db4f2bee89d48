package disk

import "errors"

var (
	// ErrInUse says that another builder works in the same folder.
	ErrInUse = errors.New("folder is in use by another builder")
	// ErrChecksum says that a file is not what its checksums promise.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrOutput says that what lies in the place of an image is no image file of
	// ours.
	ErrOutput = errors.New("not an image file")
	// ErrFull says that a build has no space left.
	ErrFull = errors.New("the disk is full")
	// ErrNoFile says that a build has no file of the format on this host.
	ErrNoFile = errors.New("no such image file here")
)
