package journey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// readyLine is the last line of what dev prints when everything runs.
const readyLine = "Ctrl-C ends it."

// stopWait is how long an environment may take to end.
const stopWait = time.Minute

// dev is a `poolkeeper dev` that runs as a child.
type dev struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed when it is gone
	err    error         // how, once it is
}

func logFile(dir string) string { return filepath.Join(dir, "dev.log") }

// startDev starts an environment in dir and returns when it is ready.
func startDev(ctx context.Context, binary, dir string, flags ...string) (*dev, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(logFile(dir))
	if err != nil {
		return nil, err
	}
	d := &dev{
		cmd: exec.Command(binary, append([]string{"dev", "--dir", dir}, flags...)...), //nolint:noctx // stop ends it in order
		log: log.Name(), exited: make(chan struct{}),
	}
	// A group of its own: Ctrl-C is for us, who stop it at the right moment. If we
	// are killed it ends itself.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	d.cmd.Stderr = log
	if !writableHome() {
		d.cmd.Env = append(os.Environ(), "HOME="+dir)
	}
	ready := make(chan struct{})
	if err := d.launch(log, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), log.Close())
	}
	select {
	case <-ready:
		return d, nil
	case <-d.exited:
		return d, d.failure()
	case <-ctx.Done():
		return d, context.Cause(ctx)
	}
}

// writableHome tells whether diskimage-builder will find a place for its caches,
// which are in the home of whoever calls it. No HOME at all is a home: the shell
// looks it up.
func writableHome() bool {
	home, found := os.LookupEnv("HOME")
	if !found {
		return true
	}
	cache := filepath.Join(home, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return false
	}
	probe, err := os.MkdirTemp(cache, "poolkeeper-")
	return err == nil && os.Remove(probe) == nil
}

// launch starts the process and follows it.
func (d *dev) launch(log *os.File, ready chan<- struct{}) error {
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	return startBound(d.cmd, func() {
		watchOutput(out, log, ready)
		d.err = d.cmd.Wait()
		_ = log.Close() // all is written; the process held it, too
		close(d.exited)
	})
}

// watchOutput copies what the process prints, and tells when it is ready.
func watchOutput(out io.Reader, log io.Writer, ready chan<- struct{}) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
		if lines.Text() == readyLine {
			close(ready)
		}
	}
}

// failure says how a process ended that should not have.
func (d *dev) failure() error {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	tail := bytes.Join(lines[max(0, len(lines)-5):], []byte("\n"))
	return fmt.Errorf("poolkeeper dev %w: %s; its log %s ends:\n%s", ErrFailed, d.cmd.ProcessState, d.log, tail)
}

// Interrupt is one Ctrl-C in the environment's terminal.
func (j *Journey) Interrupt() error { return j.dev.cmd.Process.Signal(syscall.SIGINT) }

// stop ends the environment as Ctrl-C does. One that does not end in time is
// killed, which is a failure.
func (d *dev) stop() error {
	select {
	case <-d.exited: // before it was asked to: the step that saw it has said so
		return nil
	default:
	}
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-d.exited:
	case <-timer.C:
		_ = d.cmd.Process.Kill()
		<-d.exited
		return fmt.Errorf("poolkeeper dev %w: it did not end within %s of Ctrl-C; its log is %s", ErrFailed, stopWait, d.log)
	}
	if d.err != nil {
		return d.failure()
	}
	return nil
}

// commandLine is how people would write what is run on an environment.
func (j *Journey) commandLine(args ...string) string {
	return strings.Join(append([]string{filepath.Base(j.Binary), "-c", j.ConfigFile()}, args...), " ")
}

// CLI runs a command of the program on the environment and returns the line that
// people would type, and what it printed.
func (j *Journey) CLI(ctx context.Context, args ...string) (line, output string, err error) {
	line = j.commandLine(args...)
	cmd := exec.CommandContext(ctx, j.Binary, append([]string{"-c", j.ConfigFile()}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return line, string(out), fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(stderr.String()))
	}
	return line, string(out), nil
}
