package buildlog

import (
	"fmt"
	"io"
	"os"
	"strings"

	"poolkeeper/zkmodel/diblog"
)

// causeWindow is how much of the end of a log is searched, in bytes.
// diskimage-builder traces its cleaning up, so the cause is not near the end.
const causeWindow = 1 << 20

// FindCause reads a log for what ended the build.
func FindCause(log string) (diblog.Cause, error) {
	f, err := os.Open(log)
	if err != nil {
		return diblog.Cause{}, fmt.Errorf("read log: %w", err)
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return diblog.Cause{}, fmt.Errorf("read log: %w", err)
	}
	start := max(0, end-causeWindow)
	text, err := io.ReadAll(io.NewSectionReader(f, start, end-start))
	if err != nil {
		return diblog.Cause{}, fmt.Errorf("read log: %w", err)
	}
	return diblog.CauseOf(strings.ToValidUTF8(string(text), "\uFFFD")), nil
}
