package providers

import (
	"errors"
	"fmt"
)

// What a daemon needs to know of a failure. Providers wrap these, with the
// cloud's own words, so that no daemon ever looks at a cloud's error types.
var (
	// ErrNotFound: the image or machine does not exist.
	ErrNotFound = errors.New("not found")
	// ErrQuota: the account's limit is reached; later may work.
	ErrQuota = errors.New("quota exceeded")
	// ErrCapacity: no host of the availability zone that was asked for has room; later, or another zone, may work.
	// It is an ErrQuota that says nothing about the account's limit.
	ErrCapacity = fmt.Errorf("no capacity: %w", ErrQuota)
	// ErrTransient: the cloud failed in a way that a retry may mend.
	ErrTransient = errors.New("transient failure")
	// ErrNoLimits: this user may not read the cloud's limits; pools that ignore them can be used.
	ErrNoLimits = errors.New("limits cannot be read")
	// ErrUnanswered: the cloud was asked for a machine and did not answer. It may make
	// the machine yet.
	ErrUnanswered = errors.New("no answer to a creation")
	// ErrGivesWay: others have waited for longer, and what the node has, or the nodes beside it,
	// is needed for them. It says nothing of the cloud, and later works.
	ErrGivesWay = errors.New("it gives way to others")
	// ErrInvalid: the configuration or request cannot work; a retry is useless.
	ErrInvalid = errors.New("invalid request")
	// ErrUnusable: nothing can be asked of the cloud, which is not set up as
	// configured, or refuses us. It says nothing of what was asked for, and later may
	// work, when that is mended.
	ErrUnusable = errors.New("cloud cannot be used")
	// ErrChecksum: what arrived, or what was read, is not what was built.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrNodeFailed: the machine was created and then failed.
	ErrNodeFailed = errors.New("node failed")
	// ErrRestarted: the machine had failed, and its provider has started it again in
	// another way. What WaitNode said of it holds no more; ask again.
	ErrRestarted = errors.New("node restarted")
	// ErrNotSupported: this provider has no such thing.
	ErrNotSupported = errors.New("not supported")
)

// PartialError is that of a list which lacks what could not be listed, and is returned beside the rest. What is there
// may be searched; that something is not there such a list never says.
type PartialError struct{ Err error }

// Error tells what is lacking, and why.
func (e *PartialError) Error() string {
	return "the list lacks what could not be listed: " + e.Err.Error()
}

// Unwrap gives why.
func (e *PartialError) Unwrap() error { return e.Err }
