//go:build linux

package dib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// errStat says that the kernel's line of a process reads otherwise than we know it.
var errStat = errors.New("unknown form")

// process is a line of /proc, as far as we care.
type process struct {
	pid, parent int
	start       string // clock ticks since boot; with pid, it names a process for ever
}

// Where fields stand in /proc/<pid>/stat behind the name, which is in brackets and may hold anything.
const (
	parentField = 1
	startField  = 19
)

// readProcess reads /proc/<pid>/stat. Of its fifty fields three are of use: who looks through all
// processes of a host several times for each build takes no others apart.
func readProcess(pid int) (process, error) {
	stat, err := os.ReadFile(filepath.Join(procfs.DefaultMountPoint, strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	return parseProcess(pid, stat)
}

// parseProcess takes what /proc/<pid>/stat holds.
func parseProcess(pid int, stat []byte) (process, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startField {
		return process{}, fmt.Errorf("%w: /proc/%d/stat: %q", errStat, pid, stat)
	}
	parent, err := strconv.Atoi(fields[parentField])
	if err != nil {
		return process{}, fmt.Errorf("%w: /proc/%d/stat: %w", errStat, pid, err)
	}
	return process{pid: pid, parent: parent, start: fields[startField]}, nil
}

// processes lists all; those that vanish meanwhile are left out.
func processes() []process {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	var list []process
	for _, entry := range all {
		if p, err := readProcess(entry.PID); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// descendants lists the processes below one among all, the nearest first.
func descendants(root int, all []process) []int {
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

// tenants lists the processes of the build: those whose environment vouches for
// them, and all that descend from these.
//
// Errors: ErrLeft when another build may work in the folder.
func (s Scratch) tenants() ([]int, error) {
	all := processes()
	ours, doubtful := map[int]bool{}, []int(nil)
	for _, p := range all {
		// All of it, of which procfs reads a MiB: the token may stand behind that.
		environ, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
		vouched, doubted := s.vouched(environ)
		switch {
		case p.pid == os.Getpid():
		case vouched:
			ours[p.pid] = true
			for _, pid := range descendants(p.pid, all) {
				ours[pid] = true
			}
		case doubted:
			doubtful = append(doubtful, p.pid)
		}
	}
	delete(ours, os.Getpid())
	doubtful = slices.DeleteFunc(doubtful, func(pid int) bool { return ours[pid] })
	if len(doubtful) > 0 {
		return nil, fmt.Errorf("%w: %s is in use by processes %v, of another build perhaps", ErrLeft, s.Dir, doubtful)
	}
	return slices.Sorted(maps.Keys(ours)), nil
}

// vouched reports whether an environment is that of this build. Builds of earlier
// releases have no token: they are told by their folder and their files; and
// whoever has the same folder and other files is of another installation.
func (s Scratch) vouched(environ []byte) (vouched, doubted bool) {
	entries := slices.Concat([]byte{0}, environ, []byte{0})
	has := func(name, value string) bool {
		return bytes.Contains(entries, []byte("\x00"+name+"="+value+"\x00"))
	}
	if !s.legacy() {
		return has(tokenVariable, s.Token), false
	}
	if !has("TMP_DIR", s.tmpDir) {
		return false, false
	}
	vouched = has("DIB_IMAGE_FILENAME", s.base)
	return vouched, !vouched
}

// others lists the processes that live in the folder: their root or working
// directory is in it.
func (s Scratch) others() []int {
	var list []int
	for _, p := range processes() {
		base := filepath.Join("/proc", strconv.Itoa(p.pid))
		root, _ := os.Readlink(base + "/root")
		cwd, _ := os.Readlink(base + "/cwd")
		if p.pid != os.Getpid() && (below(root, s.Dir) || below(cwd, s.Dir)) {
			list = append(list, p.pid)
		}
	}
	return list
}

// below reports whether a path is dir or in it. The kernel marks what is
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

// killTree kills a process and all that descends from it, itself first so that
// it does not meet the end of the others.
func killTree(ctx context.Context, root int) {
	below := descendants(root, processes())
	for _, pid := range append([]int{root}, below...) {
		_ = kill(ctx, pid, syscall.SIGKILL) // gone is as good
	}
}

func newProcessID(pid int) ProcessID {
	p, _ := readProcess(pid) // a process that is gone already matches nothing
	return ProcessID{PID: pid, Start: p.start, Boot: bootID()}
}

// bootID is different after each start of the machine.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// alive reports whether the very process still runs.
func (id ProcessID) alive() bool {
	p, err := readProcess(id.PID)
	return err == nil && id.Start != "" && p.start == id.Start && id.Boot == bootID()
}

// Reclaim ends what is left of a run whose daemon died, and sweeps its folder.
// The guard notices the daemon's end itself, and is given the time to clean up.
//
// Errors: ErrLeft, naming what is left.
func Reclaim(ctx context.Context, run Processes, scratch Scratch) error {
	deadline := time.NewTimer(DefaultGrace + guardPatience)
	defer deadline.Stop()
	patient := true
	for run.Guard.alive() && patient {
		again := time.NewTimer(10 * time.Millisecond)
		select {
		case <-again.C:
		case <-deadline.C:
			patient = false
		}
		again.Stop()
	}
	if run.Guard.alive() {
		killTree(ctx, run.Guard.PID)
	}
	return scratch.Sweep(ctx)
}
