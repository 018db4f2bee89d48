package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A character may be written in pieces.
func TestVisible(t *testing.T) {
	text := "Größe: 5 €\nnext\x1b[1A line\tend 🙂\n"
	for size := 1; size < 8; size++ {
		var out strings.Builder
		v := Visible(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := v.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if want := "Größe: 5 €\nnext?[1A line end 🙂\n"; out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// A log that goes into a file or a pipe is not changed.
func TestFilesAreNotChanged(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if w := Safe(file); w != file {
		t.Errorf("a file is written through %T", w)
	}
	terminal, err := os.OpenFile("/dev/null", os.O_WRONLY, 0) // a character device, as terminals are
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	if _, ok := Safe(terminal).(*visible); !ok {
		t.Error("a terminal is written as it is")
	}
}
