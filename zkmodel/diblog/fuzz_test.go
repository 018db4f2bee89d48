package diblog

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLog: whatever a build prints, the cause that is told of it is a line of it, is text, and is
// short: it goes into a record and onto a page.
func FuzzLog(f *testing.F) {
	for _, text := range []string{
		"", "dib-run-parts Mon 00:00:00 Running /tmp/install.d/50-packages\n", "2026-11-22 03:57:42.666 | E: Unable to locate package x\n", "+ trap_cleanup\n++ echo error\n",
		"E: first\nerror: second\n\x1b[31mFATAL\x1b[0m\xff\n", "New block device [x]\n", "exec_sudo: ERROR \xf0\x28\n", "poolkeeper: exit code 1\n", strings.Repeat("error ", 2000),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var finder Finder
		lines := 0
		for line := range strings.Lines(text) {
			lines++
			l := finder.Add([]byte(line))
			if l.Weight < 0 || l.Weight > 3 || len(Stamp([]byte(line))) > len(line) || !strings.HasSuffix(line, Unstamped(line)) {
				t.Errorf("%q is %+v", line, l)
			}
		}
		cause, at := finder.Cause()
		if at < 0 || at > lines || !utf8.ValidString(cause.Line) || len(cause.Line) > 1000 || strings.Contains(cause.Line, "\n") {
			t.Errorf("line %d of %d is the cause: %q", at, lines, cause.Line)
		}
	})
}
