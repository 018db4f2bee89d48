package launcher

import "errors"

// What can go wrong on the way from a request to a node. The messages that wrap
// them are stored as the reason of a failed node or request.
var (
	// ErrMove: the table of states has no such transition; a bug, or a record
	// that somebody else changed meanwhile.
	ErrMove = errors.New("not a transition")
	// ErrNoImage: no upload of the label's image is ready in this provider.
	ErrNoImage = errors.New("no image is ready")
	// ErrKeyScan: the machine's SSH host keys could not be read.
	ErrKeyScan = errors.New("host key scan failed")
	// ErrNoAnswer: a machine that exists already does not answer, or is another.
	ErrNoAnswer = errors.New("machine does not answer")
	// ErrTaken: somebody else was faster, or the record has changed; look again.
	ErrTaken = errors.New("taken by another")
	// ErrNoProvider: the provider is not configured, or could not be opened yet.
	ErrNoProvider = errors.New("provider is not available")
	// ErrAbandoned: the request's lock is lost, so its nodes are nobody's.
	ErrAbandoned = errors.New("request is no longer ours")
)
