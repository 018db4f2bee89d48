//go:build unix

package kit

import "syscall"

// NonBlock has the opening of a file wait for no pipe and no device.
const NonBlock = syscall.O_NONBLOCK
