package journey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// launcher is a `poolkeeper launcher` that runs as a child.
type launcher struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// StartLaunchers starts as many launchers as the options say, each a process of
// its own. It does nothing when the environment runs its own.
func (j *Journey) StartLaunchers(ctx context.Context) error {
	for i := range j.Launchers {
		log, err := os.Create(filepath.Join(j.Dir, fmt.Sprintf("launcher-%d.log", i+1)))
		if err != nil {
			return err
		}
		l := &launcher{
			cmd: exec.Command(j.Binary, "-c", j.ConfigFile(), "launcher", "--no-webapp"), //nolint:noctx // Stop ends it in order
			log: log.Name(), ended: make(chan struct{}),
		}
		// Ctrl-C is for us; when we die without it, the launcher ends as well, as dev does.
		l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		l.cmd.Stderr = log
		err = startBound(l.cmd, func() {
			_ = l.cmd.Wait() // it is ended by signals
			_ = log.Close()
			close(l.ended)
		})
		if err != nil {
			return errors.Join(err, log.Close())
		}
		j.launchers = append(j.launchers, l)
	}
	for _, l := range j.launchers {
		if err := j.poll(ctx, func() (bool, error) { return l.said("Serving requests") }); err != nil {
			return fmt.Errorf("launcher of %s %w: %w", l.log, ErrFailed, err)
		}
	}
	return nil
}

// said tells whether a launcher has logged a text.
func (l *launcher) said(text string) (bool, error) {
	log, err := os.ReadFile(l.log)
	return bytes.Contains(log, []byte(text)), err
}

// KillLauncher kills the launcher that has accepted the request while the node
// boots, without a warning.
func (j *Journey) KillLauncher(ctx context.Context) error {
	if err := j.AwaitGuest(ctx); err != nil {
		return err
	}
	for _, l := range j.launchers {
		accepted, err := l.said("Request accepted: request=" + j.Request)
		if err != nil {
			return err
		}
		if !accepted {
			continue
		}
		j.Killed = l.cmd.Process.Pid
		if err := l.cmd.Process.Kill(); err != nil {
			return err
		}
		<-l.ended
		return nil
	}
	return fmt.Errorf("request %s %w: no launcher has accepted it", j.Request, ErrFailed)
}

// stopLaunchers ends those that still run.
func (j *Journey) stopLaunchers() error {
	var errs []error
	for _, l := range j.launchers {
		_ = l.cmd.Process.Signal(syscall.SIGINT) // it may have ended
		timer := time.NewTimer(stopWait)
		select {
		case <-l.ended:
		case <-timer.C:
			_ = l.cmd.Process.Kill()
			<-l.ended
			errs = append(errs, fmt.Errorf("launcher %w: it did not end within %s; its log is %s", ErrFailed, stopWait, l.log))
		}
		timer.Stop()
	}
	return errors.Join(errs...)
}

// allEnded is closed when the environment or the last launcher beside it has ended:
// nobody is left to serve a request.
func (j *Journey) allEnded(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{})
	launchers, program := slices.Clone(j.launchers), j.dev // others come while this waits
	go func() {
		defer close(gone)
		if len(launchers) == 0 {
			select {
			case <-program.exited:
			case <-ctx.Done():
			}
			return
		}
		for _, l := range launchers {
			select {
			case <-l.ended:
			case <-program.exited:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return gone
}
