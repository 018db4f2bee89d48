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
	file, ok := out.(*os.File)
	if !ok || !isTerminal(out) {
		return usualWidth
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualWidth
	}
	return min(int(size.Col), mostWidth)
}
