package app

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The columns that lines have where nobody says, and at the most.
const (
	usualWidth = 80
	mostWidth  = 132
)

// Width is how many columns lines on out may have: those of the terminal, or 80.
func Width(out io.Writer) int {
	columns, _, ok := Screen(out)
	if !ok || columns == 0 || os.Getenv("TERM") == "dumb" {
		return usualWidth
	}
	return min(columns, mostWidth)
}

// Screen is the size of a terminal; ok is false for what is none. 0 is a size that it
// does not know.
func Screen(out io.Writer) (columns, rows int, ok bool) {
	file, isFile := out.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}
