// Package node is what is done with one node: what its machine boots from, how it is
// waited for and reached, and what its record says of it.
package node

import "errors"

// ErrKeyScan says that the machine's SSH host keys could not be read.
var ErrKeyScan = errors.New("host key scan failed")

// ErrNoAnswer says that a machine that exists already does not answer, or is another.
var ErrNoAnswer = errors.New("machine does not answer")
