package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// process is one launcher.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// spawn starts launcher i, which the end of the test ends.
func (w *world) spawn(i int) *process {
	log, err := os.OpenFile(filepath.Join(filepath.Dir(w.config), fmt.Sprintf("launcher-%d.log", i)),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	p := &process{cmd: exec.Command(w.binary, "-c", w.config, "launcher", "--no-webapp"), ended: make(chan struct{})} //nolint:noctx // killed below
	p.cmd.Stderr = log
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
		p.signal(unix.SIGKILL)
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			w.t.Logf("launcher %d:\n%s", i, text[max(0, len(text)-8000):])
		}
	})
	return p
}

// signal ends a process, and waits until it has.
func (p *process) signal(s unix.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended
	<-p.ended
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

// killLaunchers kills one launcher after the other, mostly without a warning.
func (w *world) killLaunchers(ctx context.Context, procs []*process) {
	r := rand.New(rand.NewPCG(*seed, 1))
	for pause(ctx, r, time.Second, 4*time.Second) {
		i := r.IntN(len(procs))
		how := unix.SIGKILL
		if r.IntN(4) == 0 {
			how = unix.SIGTERM
		}
		procs[i].signal(how)
		w.watch.count("launchers ended by " + unix.SignalName(how))
		pause(ctx, r, 0, 2*time.Second)
		procs[i] = w.spawn(i)
	}
}

// killServers kills one ZooKeeper server after the other, never a second before
// the first is back.
func (w *world) killServers(ctx context.Context) {
	r := rand.New(rand.NewPCG(*seed, 2))
	for pause(ctx, r, 3*time.Second, 8*time.Second) {
		i := r.IntN(len(w.ensemble.Servers))
		w.ensemble.Kill(i)
		w.watch.count("servers killed")
		pause(ctx, r, 0, 2*time.Second)
		w.ensemble.Restart(w.t, i) //nolint:contextcheck // a test helper
	}
}
