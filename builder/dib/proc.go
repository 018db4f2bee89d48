package dib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is a line of /proc, as far as we care.
type process struct {
	pid, parent int
	start       string // clock ticks since boot; with pid, it names a process for ever
}

// readProcess reads /proc/<pid>/stat.
func readProcess(pid int) (process, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	// The name, in parentheses, may hold anything; the fields follow the last one.
	_, rest, ok := cutLast(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return process{}, fmt.Errorf("read stat of process %d: %w", pid, errors.ErrUnsupported)
	}
	p := process{pid: pid, start: fields[19]}
	p.parent, _ = strconv.Atoi(fields[1])
	return p, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// processes lists all; those that vanish meanwhile are left out.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// descendants lists the processes below one, the nearest first.
func descendants(root int) []int {
	all := processes()
	found := []int{root}
	for i := 0; i < len(found); i++ {
		for _, p := range all {
			if p.parent == found[i] && !slices.Contains(found, p.pid) {
				found = append(found, p.pid)
			}
		}
	}
	return found[1:]
}

// tenants lists the processes that belong to a build's private folder: their
// root or working directory is in it, or their environment calls it TMP_DIR.
func tenants(dir string) []int {
	var list []int
	for _, p := range processes() {
		base := filepath.Join("/proc", strconv.Itoa(p.pid))
		root, _ := os.Readlink(base + "/root")
		cwd, _ := os.Readlink(base + "/cwd")
		environ, _ := os.ReadFile(base + "/environ")
		marked := bytes.Contains(append([]byte{0}, environ...), []byte("\x00TMP_DIR="+dir+"\x00"))
		if p.pid != os.Getpid() && (marked || below(root, dir) || below(cwd, dir)) {
			list = append(list, p.pid)
		}
	}
	return list
}

// below tells whether a path is dir or in it. The kernel marks what is
// unlinked by now.
func below(path, dir string) bool {
	path = strings.TrimSuffix(strings.TrimSuffix(path, " (deleted)"), "//deleted")
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// kill sends a signal, with sudo's help to a process of another user: parts of
// a build run as root when the daemon does not.
func kill(ctx context.Context, pid int, signal syscall.Signal) error {
	err := syscall.Kill(pid, signal)
	if errors.Is(err, syscall.EPERM) && os.Geteuid() != 0 {
		return privileged(ctx, "kill", "-"+strconv.Itoa(int(signal)), "--", strconv.Itoa(pid))
	}
	return err
}
