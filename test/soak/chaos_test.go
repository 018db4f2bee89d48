package soak

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopTime is how long a launcher that is told to stop may take.
const stopTime = 20 * time.Second

// process is one launcher.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// spawn starts launcher i, which the end of the test ends.
func (w *world) spawn(i int) *process {
	log, err := os.OpenFile(filepath.Join(cmp.Or(*logs, filepath.Dir(w.config)), fmt.Sprintf("launcher-%d.log", i)),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	p := &process{cmd: exec.Command(w.binary, "-c", w.config, "--debug", "launcher", "--no-webapp"), ended: make(chan struct{})} //nolint:noctx // killed below
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} // a test that is killed leaves nothing
	if err := p.cmd.Start(); err != nil {
		w.t.Error(err)
		return nil
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // killed, as a rule
		_ = log.Close()
	}()
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			end := len(text)
			if dump := bytes.Index(text, []byte("SIGQUIT")); dump >= 0 {
				end = dump
			}
			w.t.Logf("launcher %d:\n%s", i, text[max(0, end-8000):])
		}
	})
	return p
}

// kill ends a process without a warning, and waits until it has.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// dump ends a process so that its log shows what it was doing.
func (p *process) dump() {
	_ = p.cmd.Process.Signal(unix.SIGQUIT)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}

// retire ends a process in good order.
func (p *process) retire(w *world) {
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		if !p.cmd.ProcessState.Success() {
			w.watch.wrong("a launcher that was told to stop ended with %s", p.cmd.ProcessState)
		}
	case <-timer.C:
		w.watch.wrong("a launcher that was told to stop has not within %s", stopTime)
		p.kill()
	}
}

// pause waits for some time between the two.
func pause(ctx context.Context, r *rand.Rand, least, most time.Duration) bool {
	timer := time.NewTimer(least + time.Duration(r.Int64N(int64(most-least)+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// killLaunchers troubles one launcher after the other: most are killed without a
// warning, some are told to stop or to reload, some freeze for longer than their
// session lasts and wake up without knowing.
func (w *world) killLaunchers(ctx context.Context, procs []*process) {
	r := rand.New(rand.NewPCG(*seed, 1))
	for pause(ctx, r, time.Second, 5*time.Second) {
		i := r.IntN(len(procs))
		p := procs[i]
		switch r.IntN(8) {
		case 0:
			w.watch.count("launchers reloaded")
			_ = p.cmd.Process.Signal(unix.SIGHUP)
			continue
		case 1, 2:
			w.watch.count("launchers frozen")
			_ = p.cmd.Process.Signal(unix.SIGSTOP)
			pause(ctx, r, sessionTimeout/2, 2*sessionTimeout)
			_ = p.cmd.Process.Signal(unix.SIGCONT)
			continue
		case 3:
			w.watch.count("launchers stopped")
			p.retire(w)
		default:
			w.watch.count("launchers killed")
			p.kill()
		}
		pause(ctx, r, 0, 2*time.Second)
		procs[i] = w.spawn(i)
	}
}

// killServers kills ZooKeeper's leader and followers in turn, never a second
// before the first is back; but now and then all at once.
func (w *world) killServers(ctx context.Context) {
	r := rand.New(rand.NewPCG(*seed, 2))
	for turn := 0; pause(ctx, r, 4*time.Second, 10*time.Second); turn++ {
		leader := w.ensemble.Leader(w.t) //nolint:contextcheck // a test helper
		var killed []int
		switch {
		case turn%6 == 3:
			w.watch.count("times all servers were killed")
			killed = []int{0, 1, 2}
		case turn%3 == 0:
			w.watch.count("leaders killed")
			killed = []int{leader}
		default:
			w.watch.count("followers killed")
			killed = []int{(leader + 1 + r.IntN(2)) % 3}
		}
		for _, i := range killed {
			w.ensemble.Kill(i)
		}
		pause(ctx, r, 0, 2*time.Second)
		w.ensemble.Restart(w.t, killed...) //nolint:contextcheck // a test helper
	}
}
