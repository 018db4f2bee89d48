// Package terminal keeps what others have written from steering a terminal.
package terminal

import (
	"io"
	"os"
	"unicode/utf8"

	"poolkeeper/zkmodel/listing"
)

// visible is a writer that lets nothing through that moves a terminal's cursor,
// changes its title or turns the direction of writing: records and logs hold
// what others have written.
type visible struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end was not written yet
}

// Write implements io.Writer.
func (v *visible) Write(p []byte) (int, error) {
	text := append(v.rest, p...)
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-n:]) {
				end -= n
			}
			break
		}
	}
	v.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(v.to, listing.Visible(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Visible is w without what would steer a terminal; it is for what has no other use than
// being read.
func Visible(w io.Writer) io.Writer { return &visible{to: w} }

// Safe is w, made safe where it is a terminal: what goes into a file or a
// pipe stays as it is.
func Safe(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return Visible(w)
		}
	}
	return w
}
