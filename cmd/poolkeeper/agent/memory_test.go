package agent

import (
	"testing"

	"github.com/prometheus/procfs"
)

// Mistake: the code of the start, and of drivers that are not configured, stays resident.
func TestProgramPagesAreReleased(t *testing.T) {
	resident := func() uint64 {
		self, err := procfs.Self()
		if err != nil {
			t.Fatal(err)
		}
		status, err := self.NewStatus()
		if err != nil {
			t.Fatal(err)
		}
		return status.RssFile + status.RssShmem // a program on a tmpfs counts as the latter
	}
	before := resident()
	releaseProgramPages()
	if after := resident(); after > before-before/10 {
		t.Errorf("%d KiB of the program are resident, %d before", after>>10, before>>10)
	}
}
