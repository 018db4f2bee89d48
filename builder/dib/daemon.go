//go:build linux

package dib

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"poolkeeper/configs/kit"
)

// Do runs the command to its end. When ctx ends it is stopped, for the cause
// of ctx; the result then still tells what became of it.
//
// Errors: ErrCommand (it never ran), ErrGuard, ErrStopped with its cause. A
// command that fails is no error: see Result.
func (r Run) Do(ctx context.Context) (Result, error) {
	if _, err := lookPath(r.Argv[0], r.Env); err != nil {
		return Result{}, err
	}
	if r.Scratch.Token == "" {
		r.Scratch.Token = kit.RandomHex(16)
	}
	if r.Scratch.Dir != "" {
		if err := r.Scratch.Make(); err != nil {
			return Result{}, err
		}
	}
	g, err := r.startGuard()
	if err != nil {
		return Result{}, err
	}
	last, err := r.follow(ctx, g)
	if err != nil {
		// Guard and keeper died, and the kernel killed the command with them: what
		// they would have cleaned is cleaned here.
		return Result{ExitCode: -1}, errors.Join(err, Reclaim(ctx, g.processes, r.Scratch))
	}
	result := Result{ExitCode: last.Exit, Stopped: last.Stopped, Left: last.Left, Output: last.Output}
	switch {
	case last.Failed != "":
		return result, fmt.Errorf("%w: %s", ErrGuard, last.Failed)
	case last.Stopped != "" && ctx.Err() != nil:
		return result, fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
	case last.Stopped != "":
		return result, fmt.Errorf("%w: %s", ErrStopped, last.Stopped)
	}
	return result, nil
}

// guardProcess is a guard that runs.
type guardProcess struct {
	cmd       *exec.Cmd
	orders    *json.Encoder
	input     io.Closer
	news      chan guardNews // closed when the guard says no more
	processes Processes
}

// startGuard starts the guard in a session of its own, where a terminal's
// Ctrl-C does not reach it before our orders do.
func (r Run) startGuard() (*guardProcess, error) {
	argv := r.Guard
	if len(argv) == 0 {
		argv = []string{os.Args[0], GuardCommand}
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is stopped by orders, to clean up
	if len(r.Guard) == 0 {
		cmd.Path, cmd.Err = "/proc/self/exe", nil // right also when our file was moved or replaced
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGuard, err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGuard, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGuard, err)
	}
	g := &guardProcess{cmd: cmd, orders: json.NewEncoder(input), input: input, news: make(chan guardNews, 2)}
	go func() {
		defer close(g.news)
		decoder := json.NewDecoder(output)
		for {
			var news guardNews
			if decoder.Decode(&news) != nil {
				return
			}
			g.news <- news
		}
	}()
	g.processes.Guard = newProcessID(cmd.Process.Pid)
	return g, nil
}

// follow speaks with the guard until it is done.
func (r Run) follow(ctx context.Context, g *guardProcess) (guardNews, error) {
	defer func() {
		_ = g.input.Close()
		_ = g.cmd.Wait() // its last news say more than its exit code
	}()
	grace := r.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	if r.Started != nil {
		if err := r.Started(g.processes); err != nil {
			return guardNews{}, fmt.Errorf("note processes of build: %w", err)
		}
	}
	spec := guardSpec{
		Argv: r.Argv, Env: append(slices.Clone(r.Env), tokenVariable+"="+r.Scratch.Token), Dir: r.Dir,
		Scratch: r.Scratch, Log: r.Log, Secrets: r.Secrets,
		Grace: grace, Lease: r.lease(),
	}
	_ = g.orders.Encode(spec) // a guard that is gone says no news
	renew := time.NewTimer(renewAfter(spec.Lease))
	defer renew.Stop()
	ended := ctx.Done()
	var patience <-chan time.Time
	for {
		select {
		case news, ok := <-g.news:
			if !ok {
				return guardNews{}, fmt.Errorf("%w: it ended without a word", ErrGuard)
			}
			if news.Done {
				return news, nil
			}
			if r.Grew != nil {
				r.Grew()
			}
		case <-renew.C:
			lease := r.lease()
			_ = g.orders.Encode(guardOrder{Lease: lease})
			renew.Reset(renewAfter(lease))
		case <-ended:
			ended = nil
			patience = time.After(grace + guardPatience)
			cause := context.Cause(ctx)
			_ = g.orders.Encode(guardOrder{Stop: cause.Error(), Haste: r.Haste != nil && r.Haste(cause)})
		case <-patience:
			killTree(ctx, g.cmd.Process.Pid) // the news end with it
		}
	}
}

// Free implements Host.
func (Here) Free(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("measure free space of %s: %w", dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
