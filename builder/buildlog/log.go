package buildlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"poolkeeper/builder/dib"
	"poolkeeper/builder/disk"
	"poolkeeper/zkmodel/diblog"
)

// DefaultDir is where build logs go when the configuration names no folder.
const DefaultDir = "/var/log/nodepool/builds"

// Path is the file of a build's log.
func Path(dir, image, build string) string {
	return filepath.Join(dir, image+"-"+build+".log")
}

// MakeDir makes the folder of build logs, "" is DefaultDir, and makes sure that logs can
// be written there.
func MakeDir(dir string) (string, error) {
	dir = cmp.Or(dir, DefaultDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make build-log-dir: %w", err)
	}
	if err := disk.Writable(dir); err != nil {
		return "", fmt.Errorf("use build-log-dir: %w", err)
	}
	return dir, nil
}

// Prune removes the oldest logs of an image until keep are left; a negative
// keep leaves all, and one is always left. Only names of exactly this image
// count: an image whose name begins with another's keeps its own.
func Prune(dir, image string, keep int) error {
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

// isLogOf reports whether a file is "<image>-<build id>.log"; ids are decimal or
// hexadecimal digits.
func isLogOf(entry fs.DirEntry, image string) bool {
	name, isLog := strings.CutSuffix(entry.Name(), ".log")
	id, ours := strings.CutPrefix(name, image+"-")
	return isLog && ours && id != "" && strings.Trim(id, "0123456789abcdef") == "" && entry.Type().IsRegular()
}

// tailWindow is how much of the end of a log Tail looks at, in bytes.
const tailWindow = 64 << 10

// Tail is the end of a log: at most lines lines and size bytes, without the
// line of the exit code, and valid UTF-8. Builds run with -x, and clean up after
// a failure for longer than that: traces of commands are left out, so that what
// went wrong is still there. A traceback that it would begin in is there from its
// beginning, or, for lack of room, from its end.
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
	if n := len(all); strings.HasPrefix(all[n-1], dib.ExitLine) {
		all = all[:n-1]
	}
	all = slices.DeleteFunc(all, diblog.IsTrace)
	if len(all) == 0 { // the command has said nothing
		return "", nil
	}
	from := tracebackOf(all, max(0, len(all)-lines))
	for from < len(all)-1 && len(strings.Join(all[from:], "\n")) > size {
		from++
	}
	if tracebackOf(all, from) < from { // it had no room
		for from < len(all)-1 && isFrame(all[from]) {
			from++
		}
	}
	tail := strings.Join(all[from:], "\n")
	return strings.ToValidUTF8(tail[max(0, len(tail)-size):], ""), nil
}

// tracebackOf is the header of the Python traceback that a line is in, or the line itself.
func tracebackOf(all []string, line int) int {
	at := line
	for at > 0 && isFrame(all[at]) {
		at--
	}
	if strings.Contains(all[at], "Traceback (most recent call last)") {
		return at
	}
	return line
}

// isFrame reports whether a line may be one of a traceback, behind its header.
func isFrame(line string) bool {
	return strings.HasPrefix(diblog.Unstamped(line), "  ")
}
