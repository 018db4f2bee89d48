package chaos

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// builds is what /proc says of builds.
type builds struct {
	w *world

	mu     sync.Mutex
	thawed time.Time // when a host that was frozen as a whole went on
	most   int       // builds at a time that were seen
}

// build is the leader of one build, that lives.
type build struct {
	proc            procfs.Proc
	start           uint64
	host, image, id string
	guards          []int // that watch over it, the nearest first
}

func (b build) String() string {
	return fmt.Sprintf("build %s of %s on %s (process %d)", b.id, b.image, b.host, b.proc.PID)
}

// file is where a build writes: SITE/HOST/images/IMAGE-ID.
var file = regexp.MustCompile(`/([^/]+)/images/([^/]+)-([0-9]{10})$`)

// guardWord is in the command line of a guard and its keeper.
const guardWord = "build-guard"

// running lists the builds of the site that live.
func (b *builds) running() (list []build) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil {
			continue
		}
		at := slices.Index(args, "-o")
		if at < 0 || at+1 >= len(args) || !strings.HasPrefix(args[at+1], b.w.dir+"/") || slices.Contains(args, guardWord) {
			continue
		}
		parts := file.FindStringSubmatch(args[at+1])
		stat, err := p.Stat()
		if parts == nil || err != nil || stat.State == "Z" || stat.State == "X" || stat.State == "T" {
			continue
		}
		one := build{proc: p, start: stat.Starttime, host: parts[1], image: parts[2], id: parts[3]}
		for parent := stat.PPID; parent > 1; {
			above, err := procfs.NewProc(parent)
			if err != nil {
				break
			}
			line, err := above.CmdLine()
			if err != nil || !slices.Contains(line, guardWord) {
				break
			}
			one.guards = append(one.guards, parent)
			up, err := above.Stat()
			if err != nil {
				break
			}
			parent = up.PPID
		}
		list = append(list, one)
	}
	// Of a shell and what it forks, which has the same command line, the first counts.
	slices.SortFunc(list, func(x, y build) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.proc.PID, y.proc.PID))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(x build) bool {
		key := x.host + x.image + x.id
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// alive reports whether it is still the same process, and runs.
func (b build) alive() bool {
	stat, err := b.proc.Stat()
	return err == nil && stat.Starttime == b.start && stat.State != "Z" && stat.State != "X" && stat.State != "T"
}

// check holds what runs against the rule: one build of an image at a time, on all hosts.
func (b *builds) check() {
	list := b.running()
	b.mu.Lock()
	b.most = max(b.most, len(list))
	fresh := time.Since(b.thawed) < time.Second
	b.mu.Unlock()
	if fresh {
		return // its guard, too, has only just woken up, and ends it
	}
	for i, x := range list {
		for _, y := range list[i+1:] {
			if x.image == y.image && x.alive() && y.alive() && x.alive() {
				b.w.watch.wrong("two builds of an image live: %s and %s", x, y)
			}
		}
	}
}

// watch checks until ctx ends.
func (b *builds) watch(done <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.check()
		case <-done:
			return
		}
	}
}

// killGuard kills the nth process that guards a build, and says on which host.
func (b *builds) killGuard(nth int) string {
	for _, x := range b.running() {
		if nth < len(x.guards) {
			_ = unix.Kill(x.guards[nth], unix.SIGKILL)
			return fmt.Sprintf("of %s: process %d", x, x.guards[nth])
		}
	}
	return ""
}

// ours lists the processes that have to do with a folder: by command line, folder or
// environment.
func ours(folder string) (list []procfs.Proc) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	for _, p := range all {
		if p.PID == unix.Getpid() {
			continue
		}
		args, _ := p.CmdLine()
		environ, _ := p.Environ()
		cwd, _ := p.Cwd()
		if strings.Contains(strings.Join(append(args, environ...), "\n"), folder) || strings.HasPrefix(cwd, folder) {
			list = append(list, p)
		}
	}
	return list
}

// freeze stops all processes of a host, as when a virtual machine is paused.
func (b *builds) freeze(h *host) (pids []int) {
	for _, p := range ours(h.path("")) {
		_ = unix.Kill(p.PID, unix.SIGSTOP)
		pids = append(pids, p.PID)
	}
	return pids
}

// thaw lets them go on.
func (b *builds) thaw(_ *host, pids []int) {
	b.mu.Lock()
	b.thawed = time.Now()
	b.mu.Unlock()
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// leftovers are what builds or daemons have left: processes, mounts, files.
func (w *world) leftovers() (left []string) {
	for _, p := range ours(w.dir) {
		args, _ := p.CmdLine()
		left = append(left, fmt.Sprintf("process %d: %s", p.PID, strings.Join(args, " ")))
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return append(left, err.Error())
	}
	for _, m := range mounts {
		if strings.HasPrefix(m.MountPoint, w.dir) && filepath.Base(m.MountPoint) != "images" {
			left = append(left, "mount "+m.MountPoint)
		}
	}
	for _, h := range w.hosts {
		files, _ := filepath.Glob(h.path("tmp/*"))
		for _, f := range files {
			left = append(left, "file "+f)
		}
	}
	return left
}
