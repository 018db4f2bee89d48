package diblog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCauseOf(t *testing.T) {
	for text, want := range map[string]Cause{
		"":           {},
		"all well\n": {},
		"E: first\nE: second\nE: apt-get x failed\nExit code: 1\n":    {Line: "E: second"},
		"cp: cannot stat 'x'\nrm: cannot remove 'y'\n":                {Line: "rm: cannot remove 'y'"},
		"E: old\ndib-run-parts 10-a completed\ncp: cannot stat 'x'\n": {Line: "cp: cannot stat 'x'"},
		"why: denied\n+ trap_cleanup\nE: umount failed\n":             {Line: "why: denied"},
		"error: " + strings.Repeat("ä", 200) + "\n":                   {Line: "error: " + strings.Repeat("ä", 116) + " …"},
		// What undoing prints is a consequence, and a cause only if there is no other.
		"Foo: no\nE: bad image\nDEBUG a.plugin [-] Calling rollback for mount rollback /a.py:7\nDEBUG a.utils [-] exec_sudo: fatal: cannot detach exec_sudo /a.py:1\n" +
			"ERROR a.blockdevice [-] Rollback complete, exiting\n": {Line: "E: bad image"},
		"DEBUG a.plugin [-] Calling rollback for mount rollback /a.py:7\nfatal: cannot detach\n": {Line: "fatal: cannot detach"},
		"Foo: not found\numount: /tmp/x: target is busy\n":                                       {Line: "Foo: not found"},
		"Foo: not found\nlosetup: /dev/loop0: detach failed: No such device or address\n":        {Line: "Foo: not found"},
		"losetup: cannot find an unused loop device\n":                                           {Line: "losetup: cannot find an unused loop device"},
		"INFO x [-] New block device [/dev/loop0]\nmkfs: failed\n":                               {Line: "mkfs: failed"},
		"INFO x [-] New block device [sudo: policy\n/dev/loop0]\nmkfs: failed\n":                 {Line: "sudo: policy (diskimage-builder takes that for the name of its loop device: sudo must not print it)"},
		"2026-11-20 09:47:15.388 | tar: x: No space left on device\nsync: not found\n":           {Line: "tar: x: No space left on device"},
	} {
		if diff := cmp.Diff(want, CauseOf(text)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", text, diff)
		}
	}
}
