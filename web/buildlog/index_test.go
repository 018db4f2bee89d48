package buildlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// later is a deadline that no test reaches.
func later() time.Time { return time.Now().Add(time.Hour) }

// readAll is the index of a file as it is now.
func (x *index) readAll(t *testing.T, file *os.File) {
	t.Helper()
	if whole, err := x.advance(file, later()); err != nil || !whole {
		t.Fatalf("read: whole %v, %v", whole, err)
	}
}

// shows are some lines, each as NUMBER:TEXT.
func (x *index) shows(t *testing.T, file *os.File, from, count int) string {
	t.Helper()
	lines, err := x.window(file, from, count)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%d:%s", l.number, l.text))
	}
	return strings.Join(all, " ")
}

// openLog opens a file of the test's.
func openLog(t *testing.T, text string) (*os.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	appendTo(t, path, text)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file, path
}

// Mistakes: a line that is counted twice as it grows, one without an end that is lost or
// counted for good, a log that was cut off or written anew and is taken for the old one.
func TestIndexGrowsWithItsLog(t *testing.T) {
	file, path := openLog(t, "")
	x := &index{}
	x.readAll(t, file)
	if x.total() != 0 || x.shows(t, file, 1, 10) != "" {
		t.Errorf("an empty log has %d lines", x.total())
	}
	appendTo(t, path, "one\ntw")
	x.readAll(t, file)
	if got := x.shows(t, file, 1, 10); x.lines != 1 || x.total() != 2 || got != "1:one 2:tw" {
		t.Errorf("%d lines of %d: %s", x.lines, x.total(), got)
	}
	appendTo(t, path, "o\n\nfour\r\n")
	x.readAll(t, file)
	if got := x.shows(t, file, 2, 2); x.lines != 4 || x.total() != 4 || got != "2:two 3:" {
		t.Errorf("%d lines of %d: %s", x.lines, x.total(), got)
	}
	if got := x.shows(t, file, 9, 2); got != "" {
		t.Errorf("behind the end: %s", got)
	}
	was := x.generation
	for _, again := range []string{"cut\n", "another that is longer than the first, by far, and begins otherwise\n"} {
		if err := os.WriteFile(path, []byte(again), 0o600); err != nil {
			t.Fatal(err)
		}
		x.readAll(t, file)
		if was++; x.generation != was || x.total() != 1 {
			t.Errorf("%q: generation %d, want %d; %d lines", again, x.generation, was, x.total())
		}
	}
}

// What is known of a log of any length is bounded, and lines are found nevertheless.
func TestIndexOfALongLogIsBounded(t *testing.T) {
	var text bytes.Buffer
	const lines = firstMarks*maxMarks + 3*firstMarks + 7
	for i := 1; i <= lines; i++ {
		word := "line"
		if i%1000 == 1 {
			word = "error"
		}
		fmt.Fprintf(&text, "%s %d\n", word, i)
	}
	file, path := openLog(t, text.String())
	x := &index{}
	x.readAll(t, file)
	if len(x.marks) > maxMarks || x.stride != 2*firstMarks || len(x.errors) > maxErrors || x.wrong != lines/1000+1 {
		t.Errorf("%d marks, a stride of %d, %d of %d errors", len(x.marks), x.stride, len(x.errors), x.wrong)
	}
	for _, n := range []int{1, firstMarks, firstMarks + 1, lines / 2, lines} {
		if got := x.shows(t, file, n, 1); !strings.HasPrefix(got, fmt.Sprintf("%d:", n)) || !strings.HasSuffix(got, fmt.Sprintf(" %d", n)) {
			t.Errorf("line %d is %s", n, got)
		}
	}
	appendTo(t, path, strings.Repeat("x", 3<<20)+"\nlast\n")
	x.readAll(t, file)
	if cap(x.line) > 2*maxLine {
		t.Errorf("%d bytes of a line are kept", cap(x.line))
	}
	long, err := x.window(file, lines+1, 2)
	if err != nil || len(long) != 2 || len(long[0].text) != maxLine || long[0].left != 3<<20-maxLine || string(long[1].text) != "last" {
		t.Errorf("%d lines: %v", len(long), err)
	}
	if whole, err := new(index).advance(file, time.Now().Add(-time.Second)); whole || err != nil {
		t.Errorf("without time: whole %v, %v", whole, err)
	}
}

func TestIndexesAreFew(t *testing.T) {
	var all indexes
	first := all.of("0")
	for i := range maxIndexes - 1 {
		all.of(fmt.Sprint(i + 1))
	}
	if all.of("0") != first {
		t.Error("the first is forgotten too soon")
	}
	all.of("more")
	if len(all.all) != maxIndexes || len(all.used) != maxIndexes || all.all["1"] != nil || all.all["0"] == nil {
		t.Errorf("%d are kept", len(all.all))
	}
}

// largeLog is a log of 50 MB as diskimage-builder writes them: traces, lines of apt, some errors.
func largeLog(tb testing.TB) (*Dir, string) {
	tb.Helper()
	var text bytes.Buffer
	for i := 0; text.Len() < 50<<20; i++ {
		at := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC).Add(time.Duration(i) * 5 * time.Millisecond).Format("2006-01-02 15:04:05.000")
		switch {
		case i%50000 == 0:
			fmt.Fprintf(&text, "%s | dib-run-parts Running /tmp/dib_build.x/hooks/phase%d.d/50-packages\n", at, i/50000)
		case i%40000 == 777:
			fmt.Fprintf(&text, "%s | \x1b[31mE: Unable to locate package nothing-%d\x1b[0m\n", at, i)
		case i%2 == 0:
			fmt.Fprintf(&text, "%s | ++ /usr/lib/python3/dist-packages/diskimage_builder/lib/common-functions:unmount_dir:%d :   for m in $mnts\n", at, i%500)
		default:
			fmt.Fprintf(&text, "%s | Setting up libgstreamer-plugins-base1.0-%d:amd64 (1.22.0-3+deb12u%d) ...\n", at, i, i%9)
		}
	}
	text.WriteString("Exit code: 1\n")
	path := filepath.Join(tb.TempDir(), "log")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return NewDir(func(string, string) string { return path }), path
}
