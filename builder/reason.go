package builder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"

	"poolkeeper/builder/disk"
	"poolkeeper/zkmodel"
)

// longestReason keeps a reason one line that a table can show.
const longestReason = 400

// exitError is the end of a build command that failed.
type exitError struct {
	command string
	code    int
}

func (e *exitError) Error() string {
	if e.code > 128 && e.code < 128+65 {
		return fmt.Sprintf("%s was ended by signal %d (%s)", e.command, e.code-128, syscall.Signal(e.code-128))
	}
	return fmt.Sprintf("%s ended with exit code %d", e.command, e.code)
}

// errFull says that a build had no space left.
var errFull = errors.New("the disk is full")

// withSpace says so when a build failed because its disk was full.
func withSpace(err error, tail string, images *disk.Images) error {
	if errors.Is(err, errFull) {
		return err
	}
	if !strings.Contains(tail, syscall.ENOSPC.Error()) && !strings.Contains(tail, "No space left on device") && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	left := "unknown"
	if free, ferr := images.Free(); ferr == nil {
		left = humanize.IBytes(uint64(max(free, 0)))
	}
	return fmt.Errorf("%w (%s has %s left): %w", errFull, images.Dir(), left, err)
}

// reason is an error in one line, for the record.
func reason(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + " …"
	}
	return text
}

// sizes lists the files of a build for people.
func sizes(files map[string]zkmodel.ImageFile) string {
	var list []string
	for _, format := range slices.Sorted(maps.Keys(files)) {
		list = append(list, format+" "+humanize.IBytes(uint64(max(files[format].Size, 0))))
	}
	return strings.Join(list, ", ")
}
