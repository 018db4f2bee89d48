package agent

import (
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// startTime is how long a daemon runs before it releases the pages that only its start needed.
const startTime = time.Minute

// releaseProgramPages unmaps the pages of the program that are in memory. They are read-only and part of the page cache: a page
// that is needed again is mapped again. Without this, the process keeps the code of all drivers and of its start resident, which
// is more than twice the rest.
//
// Source: madvise(2), MADV_DONTNEED for private file mappings.
func releaseProgramPages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return // no Linux
	}
	self, err := procfs.Self()
	if err != nil {
		return
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return
	}
	for _, m := range maps {
		if m.Pathname == program && !m.Perms.Write {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED)
		}
	}
}
