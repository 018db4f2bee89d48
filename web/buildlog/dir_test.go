package buildlog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newDir is a Dir in a folder of the test's.
func newDir(t *testing.T) (d *Dir, path func(image, build string) string) {
	t.Helper()
	dir := t.TempDir()
	path = func(image, build string) string { return filepath.Join(dir, image+"-"+build+".log") }
	return NewDir(path), path
}

// appendTo writes to a log.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDirOpensWhatThereIs(t *testing.T) {
	d, path := newDir(t)
	if _, _, err := d.Open("image", "0000000001"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that is not there: %v, want ErrNotExist", err)
	}
	if err := os.Mkdir(path("image", "0000000002"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Open("image", "0000000002"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a folder: %v, want ErrInvalid", err)
	}
	appendTo(t, path("image", "0000000003"), "text")
	file, more, err := d.Open("image", "0000000003")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if data, err := io.ReadAll(file); err != nil || string(data) != "text" || more != nil {
		t.Errorf("read %q, %v, more %v; want the text, complete", data, err, more != nil)
	}
}

func TestMore(t *testing.T) {
	d, path := newDir(t)
	grew, done := d.Writing("image", "0000000001")
	appendTo(t, path("image", "0000000001"), "one\n")
	file, more, err := d.Open("image", "0000000001")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !more(t.Context(), 0) {
		t.Error("there is more than nothing, but no more")
	}

	answers := make(chan bool)
	ask := func(ctx context.Context, size int64) { answers <- more(ctx, size) }
	go ask(t.Context(), 4)
	appendTo(t, path("image", "0000000001"), "two\n")
	grew()
	if !<-answers {
		t.Error("the log grew, but there is no more")
	}

	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx, 8)
	grew() // without a reason
	cancel()
	if <-answers {
		t.Error("there is more although nothing was written")
	}

	go ask(t.Context(), 8)
	appendTo(t, path("image", "0000000001"), "three\n")
	done()
	if !<-answers {
		t.Error("the last line is lost")
	}
	if more(t.Context(), 14) {
		t.Error("there is more after the end")
	}
}

// A writer that does not tell is noticed nevertheless.
func TestMoreWithoutAWord(t *testing.T) {
	d, path := newDir(t)
	_, done := d.Writing("image", "0000000001")
	defer done()
	appendTo(t, path("image", "0000000001"), "one\n")
	file, more, err := d.Open("image", "0000000001")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	write := time.AfterFunc(10*time.Millisecond, func() { appendTo(t, path("image", "0000000001"), "two\n") })
	defer write.Stop()
	if !more(t.Context(), 4) {
		t.Error("nobody noticed")
	}
}

// A build that is tried again under the same name writes one log; the end of
// the first is not that of the second.
func TestWritingTwice(t *testing.T) {
	d, path := newDir(t)
	_, firstDone := d.Writing("image", "0000000001")
	grew, secondDone := d.Writing("image", "0000000001")
	firstDone()
	appendTo(t, path("image", "0000000001"), "x")
	grew()
	file, more, err := d.Open("image", "0000000001")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if more == nil || !more(t.Context(), 0) {
		t.Error("the second is taken for complete")
	}
	secondDone()
	if len(d.live) != 0 {
		t.Errorf("%d logs are kept in memory after their end", len(d.live))
	}
}
