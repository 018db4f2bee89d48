package buildlog

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzPaint: what a build prints moves nothing on a page: no control character is left of it, and
// no more text than there was.
func FuzzPaint(f *testing.F) {
	for _, line := range []string{"", "\x1b[1;31mx\x1b[0m", "\x1b]8;;u\x1b\\y", "a\rb\r", "\x1b[38;2;0;200;0mb", "\u009b31m", "\x1b(Ba\x1b", "\xff\t\u202e", "\x1b[38:5m\x1b[48;m"} {
		f.Add([]byte(line), []byte(line))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var p painter
		for _, line := range [][]byte{first, second} {
			line = bytes.ReplaceAll(line, []byte("\n"), nil) // it is one line
			for _, span := range p.paint(line) {
				if !utf8.ValidString(span.Text) || strings.ContainsFunc(span.Text, unicode.IsControl) {
					t.Errorf("%q shows %q", line, span.Text)
				}
				if strings.ContainsAny(span.Class, "\"'<>&;") || len(span.Text) > 4*len(line) {
					t.Errorf("%q has %+v", line, span)
				}
			}
		}
	})
}
