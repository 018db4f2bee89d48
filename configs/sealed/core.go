//go:build linux

package sealed

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlock has a pipe not waited for.
const nonBlock = syscall.O_NONBLOCK

// coreLimit is too short for a file; and it is the one limit at which Linux also pipes no
// core to a program (kernel.core_pattern with "|"), which 0 does not prevent: core(5) and
// do_coredump in fs/coredump.c.
const coreLimit = 1

// NoCoreDumps keeps this process, and those that it starts, from leaving their memory in a
// file. It cannot be undone. Where the limit is 0 already, and not this process's to raise, it
// makes this process alone one of which there is no core at all: its files in /proc are
// root's then, and what it reads of itself stays readable (proc(5), "dumpable").
func NoCoreDumps() {
	if syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: coreLimit, Max: coreLimit}) != nil {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // 0 is always taken
	}
}
