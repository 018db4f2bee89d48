package dib

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// DefaultLogDir is where build logs go when the configuration names no folder.
const DefaultLogDir = "/var/log/nodepool/builds"

// LogPath is the file of a build's log.
func LogPath(dir, image, build string) string {
	return filepath.Join(dir, image+"-"+build+".log")
}

// PruneLogs removes the oldest logs of an image until keep are left; a negative
// keep leaves all, and one is always left. Only names of exactly this image
// count: an image whose name begins with another's keeps its own.
func PruneLogs(dir, image string, keep int) error {
	if keep < 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune logs: %w", err)
	}
	type logFile struct {
		name    string
		changed time.Time
	}
	var logs []logFile
	for _, entry := range entries {
		if !isLogOf(entry, image) {
			continue
		}
		if info, err := entry.Info(); err == nil {
			logs = append(logs, logFile{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(logs, func(a, b logFile) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(b.name, a.name))
	})
	for i, log := range logs {
		if i < max(keep, 1) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, log.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune logs: %w", err)
		}
	}
	return nil
}

// isLogOf tells whether a file is "<image>-<build id>.log"; ids are decimal or
// hexadecimal digits.
func isLogOf(entry fs.DirEntry, image string) bool {
	name, isLog := strings.CutSuffix(entry.Name(), ".log")
	id, ours := strings.CutPrefix(name, image+"-")
	return isLog && ours && id != "" && strings.Trim(id, "0123456789abcdef") == "" && entry.Type().IsRegular()
}

// tailWindow is how much of the end of a log Tail looks at, in bytes.
const tailWindow = 64 << 10

// shellTrace matches what a shell prints of a command before it runs it, behind
// the time that diskimage-builder puts before each line.
var shellTrace = regexp.MustCompile(`^(\S+ \S+ \| )?\++ `)

// Tail is the end of a log: at most lines lines and size bytes, without the
// line of the exit code, and valid UTF-8. Builds run with -x, and clean up after
// a failure for longer than that: traces of commands are left out, so that what
// went wrong is still there.
func Tail(file string, lines, size int) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	start := max(0, end-tailWindow)
	text, err := io.ReadAll(io.NewSectionReader(f, start, end-start))
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	all := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), "\n"), "\n")
	if start > 0 && len(all) > 1 {
		all = all[1:] // cut off at its front
	}
	if n := len(all); strings.HasPrefix(all[n-1], exitLine) {
		all = all[:n-1]
	}
	all = slices.DeleteFunc(all, shellTrace.MatchString)
	all = all[max(0, len(all)-lines):]
	for len(all) > 1 && len(strings.Join(all, "\n")) > size {
		all = all[1:]
	}
	tail := strings.Join(all, "\n")
	return strings.ToValidUTF8(tail[max(0, len(tail)-size):], ""), nil
}

// exitLine begins the last line of a log, as Nodepool writes it.
const exitLine = "Exit code: "
