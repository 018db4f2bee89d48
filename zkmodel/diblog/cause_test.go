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
		"E: first\nE: second\nE: apt-get x failed\nExit code: 1\n":                     {Line: "E: second"},
		"cp: cannot stat 'x'\nrm: cannot remove 'y'\n":                                 {Line: "rm: cannot remove 'y'"},
		"E: old\ndib-run-parts 10-a completed\ncp: cannot stat 'x'\n":                  {Line: "cp: cannot stat 'x'"},
		"why: denied\n+ trap_cleanup\nE: umount failed\n":                              {Line: "why: denied"},
		"error: " + strings.Repeat("ä", 200) + "\n":                                    {Line: "error: " + strings.Repeat("ä", 116) + " …"},
		"INFO x [-] New block device [/dev/loop0]\nmkfs: failed\n":                     {Line: "mkfs: failed"},
		"INFO x [-] New block device [sudo: policy\n/dev/loop0]\nmkfs: failed\n":       {Line: "sudo: policy (diskimage-builder takes that for the name of its loop device: sudo must not print it)"},
		"2026-11-20 09:47:15.388 | tar: x: No space left on device\nsync: not found\n": {Line: "tar: x: No space left on device"},
	} {
		if diff := cmp.Diff(want, CauseOf(text)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", text, diff)
		}
	}
}
