package app

import (
	"errors"
	"fmt"
)

// ExitCode ends the program in silence: that of a command on a node.
type ExitCode int

// Error implements error.
func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitAttention is the exit code of a command that has done what it was asked for, and has
// found what needs attention.
const ExitAttention ExitCode = 3

// ErrConfig is behind the end of a daemon that cannot use its configuration.
var ErrConfig = errors.New("wrong configuration")

// ConfigError is such an end, told in the words of what is wrong.
type configError struct{ error }

// WrongConfig ends a daemon that cannot use its configuration, because of err.
func WrongConfig(err error) error { return configError{err} }

// Is tells of ErrConfig; Unwrap, of what is wrong.
func (e configError) Is(target error) bool { return target == ErrConfig }

// Unwrap is what is wrong.
func (e configError) Unwrap() error { return e.error }
