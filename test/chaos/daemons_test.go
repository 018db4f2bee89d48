package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stopTime is how long a daemon that is told to stop may take.
const stopTime = 20 * time.Second

// badConfiguration is the exit status of a daemon that cannot read its configuration.
const badConfiguration = 78

// host is a machine with one daemon.
type host struct {
	w          *world
	name, kind string

	mu   sync.Mutex
	proc *process // the daemon, or the last one that there was
}

// newHosts are n hosts of a kind of daemon.
func newHosts(w *world, kind string, n int) (list []*host) {
	for i := range n {
		list = append(list, &host{w: w, kind: kind, name: fmt.Sprintf("%s-%d", kind, i+1)})
	}
	return list
}

// path is a file or folder of the host's own.
func (h *host) path(name string) string { return filepath.Join(h.w.dir, h.name, name) }

// images is where a builder keeps what it builds: a small disk of its own, where we may
// mount one.
func (h *host) images() string { return h.path("images") }

// log is what the daemons of the host say.
func (h *host) log() string { return h.path("log") }

// process is one daemon.
type process struct {
	cmd      *exec.Cmd
	ended    chan struct{}
	expected atomic.Bool // we have ended it
}

// spawn starts the daemon of a host.
func (h *host) spawn() {
	log, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.w.t.Error(err)
		return
	}
	args := append(h.w.net.command(h.name), h.w.binary, "-c", h.path("nodepool.yaml"), "-s", h.w.path("secure.yaml"), "--debug", h.kind, "--no-webapp")
	p := &process{cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})} //nolint:noctx // killed below
	p.cmd.Dir, p.cmd.Stderr = h.path(""), log
	p.cmd.Env = append(os.Environ(), "TMPDIR="+h.path("tmp"))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} // a test that is killed leaves nothing
	if err := p.cmd.Start(); err != nil {
		h.w.t.Error(err)
		return
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // killed, as a rule
		_ = log.Close()
		switch {
		case p.expected.Load():
		case p.cmd.ProcessState.ExitCode() == badConfiguration && h.w.spoiled.Load():
			// It was started on half a file. systemd starts it again.
			h.w.watch.count("daemons that found half a configuration")
			time.AfterFunc(time.Second, func() {
				if h.daemon() == p && !p.expected.Load() {
					h.spawn()
				}
			})
		default:
			h.w.watch.wrong("the daemon of %s ended by itself with %s", h.name, p.cmd.ProcessState)
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proc = p
}

// daemon is the daemon of the host.
func (h *host) daemon() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.proc
}

// signal is nothing where the daemon has ended.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends a process without a warning, and waits until it has.
func (p *process) kill() {
	p.expected.Store(true)
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// retire ends a daemon in good order.
func (h *host) retire() {
	p := h.daemon()
	if p.expected.Swap(true) || p.over() {
		return // that was told
	}
	p.signal(unix.SIGTERM)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		if !p.cmd.ProcessState.Success() {
			h.w.watch.wrong("%s, told to stop, ended with %s", h.name, p.cmd.ProcessState)
		}
	case <-timer.C:
		h.w.watch.wrong("%s, told to stop, has not within %s", h.name, stopTime)
		h.dump()
		p.kill()
	}
}

// dump has the log of a daemon show what it was doing, which ends it.
func (h *host) dump() {
	p := h.daemon()
	p.expected.Store(true)
	p.signal(unix.SIGQUIT)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}

// showLogs tells where logs are, and how they end.
func (w *world) showLogs(t *testing.T) {
	t.Helper()
	for _, h := range w.hosts {
		text, _ := os.ReadFile(h.log())
		end := len(text)
		if dump := bytes.Index(text, []byte("SIGQUIT")); dump >= 0 {
			end = dump
		}
		t.Logf("%s ends:\n%s", h.log(), text[max(0, end-2500):end])
	}
}
