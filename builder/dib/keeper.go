//go:build linux

package dib

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// innerVariable tells a guard that it has a keeper.
const innerVariable = "POOLKEEPER_GUARD"

// specFD is where a guard with a keeper finds its orders for the start; what
// follows them comes from the daemon itself.
const specFD = 3

// Guard runs one build and outlives the daemon only to end it. It is the whole
// of the sub-command GuardCommand: orders come from in, news go to out.
//
// It is two processes, so that either can be killed alone and nothing is left:
// the guard, and above it the keeper, which does nothing but wait. Everything
// that descends from a guard that is dead becomes the keeper's, which ends it and
// cleans up; a guard whose keeper is dead receives SIGTERM.
//
// Terminal and service manager may signal us like any process; the build is
// then stopped like by the daemon's order.
func Guard(in, out *os.File) error {
	// The daemon's end of the pipes may be gone. The build gets the signals'
	// default actions, which it would not if we ignored them.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGPIPE, syscall.SIGHUP)
	defer signal.Stop(deaf)
	if os.Getenv(innerVariable) != "" {
		return guardAlone(in, out)
	}
	return keep(in, out)
}

// keep runs a guard, and does its work if it dies.
func keep(in, out *os.File) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	line, err := readLine(in)
	if err != nil {
		return fmt.Errorf("%w: read orders: %w", ErrGuard, err)
	}
	var spec guardSpec
	if err := json.Unmarshal(line, &spec); err != nil {
		return fmt.Errorf("%w: read orders: %w", ErrGuard, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGuard, err)
	}
	guard, err := startTree(child{
		path: "/proc/self/exe", argv: os.Args, env: append(os.Environ(), innerVariable+"=1"),
		files: []uintptr{in.Fd(), out.Fd(), os.Stderr.Fd(), read.Fd()}, onDeath: syscall.SIGTERM,
	})
	_ = read.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGuard, errors.Join(err, write.Close()))
	}
	go func() { // it may be more than a pipe holds
		_, _ = write.Write(line)
		_ = write.Close()
	}()
	status := guard.wait(signals)
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	news := guardNews{Done: true, Exit: -1, Failed: fmt.Sprintf("the guard died (%s)", describe(status))}
	news.Left = spec.cleanUp(context.Background(), guard)
	_ = json.NewEncoder(out).Encode(news) // nobody may be there to hear it
	return nil
}

// wait waits for the leader's end and hands signals on to it.
func (t *processTree) wait(signals <-chan os.Signal) syscall.WaitStatus {
	for {
		select {
		case status := <-t.exited:
			return status
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok {
				_ = syscall.Kill(t.leader, s) // gone is as good
			}
		}
	}
}

// cleanUp ends what is left of a process tree and takes away what it made. It returns
// what could not be.
func (s guardSpec) cleanUp(ctx context.Context, t *processTree) (left string) {
	if !t.killAll(ctx, killPatience) {
		left = fmt.Sprintf("processes %v", descendants(os.Getpid(), processes()))
	}
	if err := s.Scratch.Sweep(ctx); err != nil {
		left = err.Error()
	}
	return left
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// readLine reads to the first end of line and not a byte further: the rest is
// another's.
func readLine(in io.Reader) ([]byte, error) {
	var line []byte
	var b [1]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return nil, err
		}
		line = append(line, b[0])
		if b[0] == '\n' {
			return line, nil
		}
	}
}
