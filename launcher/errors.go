package launcher

import (
	"errors"

	"poolkeeper/launcher/node"
)

// What can go wrong on the way from a request to a node. The messages that wrap
// them are stored as the reason of a failed node or request.
var (
	// ErrNoImage: no upload of the label's image is ready in this provider.
	ErrNoImage = errors.New("no image is ready")
	// ErrKeyScan: the machine's SSH host keys could not be read.
	ErrKeyScan = node.ErrKeyScan
	// ErrNoAnswer: a machine that exists already does not answer, or is another.
	ErrNoAnswer = errors.New("machine does not answer")
)
