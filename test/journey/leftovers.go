package journey

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clearWait is how long what was ended may take to be gone.
const clearWait = 5 * time.Second

// process is one that has to do with a folder.
type process struct {
	pid  int
	line string
}

// processes are those whose command line, environment or working directory names
// dir, this one excepted. name restricts them to programs that begin so.
func processes(dir, name string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// What cannot be read has ended meanwhile, or is another user's.
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		cwd, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if !bytes.Contains(line, []byte(dir)) && !bytes.Contains(environ, []byte(dir)) && !strings.HasPrefix(cwd, dir) {
			continue
		}
		program, _, _ := bytes.Cut(line, []byte{0})
		if strings.HasPrefix(filepath.Base(string(program)), name) {
			text := strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
			found = append(found, process{pid, text})
		}
	}
	return found, nil
}

// mounts are the mount points that have to do with dir.
func mounts(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// loops are the loop devices over files in dir.
func loops(dir string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && bytes.Contains(backing, []byte(dir)) { // or it was detached just now
			found = append(found, strings.Split(file, "/")[3]+" on "+strings.TrimSpace(string(backing)))
		}
	}
	return found, nil
}

// CheckNothingLeft fails if a process, a mount or a loop device has still to do
// with dir, after a moment of grace.
func CheckNothingLeft(ctx context.Context, dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clearWait)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := leftovers(dir)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("clean up %w: this is left behind:\n%s", ErrFailed, strings.Join(left, "\n"))
		}
	}
}

func leftovers(dir string) ([]string, error) {
	var left []string
	running, err := processes(dir, "")
	if err != nil {
		return nil, err
	}
	for _, p := range running {
		left = append(left, fmt.Sprintf("process %d: %s", p.pid, p.line))
	}
	for what, list := range map[string]func(string) ([]string, error){"mount": mounts, "loop device": loops} {
		items, err := list(dir)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			left = append(left, what+": "+item)
		}
	}
	return left, nil
}
