//go:build !linux

package sealed

// nonBlock has a pipe not waited for, where there are pipes.
const nonBlock = 0

// NoCoreDumps has nothing to do where no process leaves its memory in a file.
func NoCoreDumps() {}
