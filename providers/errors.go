package providers

import "errors"

// What a daemon needs to know of a failure. Providers wrap these, with the
// cloud's own words, so that no daemon ever looks at a cloud's error types.
var (
	// ErrNotFound: the image or machine does not exist.
	ErrNotFound = errors.New("not found")
	// ErrQuota: the account's limit is reached; later may work.
	ErrQuota = errors.New("quota exceeded")
	// ErrTransient: the cloud failed in a way that a retry may mend.
	ErrTransient = errors.New("transient failure")
	// ErrInvalid: the configuration or request cannot work; a retry is useless.
	ErrInvalid = errors.New("invalid request")
	// ErrChecksum: what arrived, or what was read, is not what was built.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrNodeFailed: the machine was created and then failed.
	ErrNodeFailed = errors.New("node failed")
	// ErrNotSupported: this provider has no such thing.
	ErrNotSupported = errors.New("not supported")
)
