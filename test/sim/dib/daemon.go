package dib

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"poolkeeper/builder/dib"
	"poolkeeper/configs/clock"
)

// Daemon is a builder's process on a Host, and what it sees of it: a dib.Host.
type Daemon struct {
	*Host
	awake func()
	dead  chan struct{}
}

var _ dib.Host = (*Daemon)(nil)

// Daemon makes the way of a process to its host. awake returns when the process is not paused.
func (h *Host) Daemon(awake func()) *Daemon {
	return &Daemon{Host: h, awake: awake, dead: make(chan struct{})}
}

// Crash ends the process: its guards hear that it is gone.
func (d *Daemon) Crash() { close(d.dead) }

// Free implements dib.Host.
func (d *Daemon) Free(string) (int64, error) { return d.free(), nil }

// Do implements dib.Host, as dib.Run.Do with a guard.
func (d *Daemon) Do(ctx context.Context, r dib.Run) (dib.Result, error) {
	if err := d.alive(); err != nil {
		return dib.Result{}, err
	}
	if r.Scratch.Dir != "" {
		if err := os.Mkdir(d.at(r.Scratch.Dir), 0o700); err != nil {
			return dib.Result{}, fmt.Errorf("make temporary folder of build: %w", err)
		}
	}
	g := d.start(r, lease(r), d.dead)
	if r.Started != nil {
		if err := r.Started(g.processes); err != nil {
			g.order(order{stop: "the builder could not note it", haste: true})
			<-g.ended
			return dib.Result{}, fmt.Errorf("note processes of build: %w", err)
		}
	}
	g.order(order{begin: true})
	return d.follow(ctx, r, g)
}

// follow renews the lease until all has ended.
func (d *Daemon) follow(ctx context.Context, r dib.Run, g *run) (dib.Result, error) {
	renew := clock.NewTimer(ctx, renewAfter(lease(r)))
	defer renew.Stop()
	ended := ctx.Done()
	for {
		select {
		case <-g.ended:
			d.awake()
			if err := d.alive(); err != nil {
				return dib.Result{}, err
			}
			return d.result(ctx, g)
		case <-renew.C:
			left := lease(r)
			g.order(order{lease: left})
			renew.Reset(renewAfter(left))
		case <-ended:
			ended = nil
			cause := context.Cause(ctx)
			g.order(order{stop: cause.Error(), haste: r.Haste != nil && r.Haste(cause)})
		case <-d.dead:
			return dib.Result{}, ErrCrashed
		}
	}
}

func (d *Daemon) result(ctx context.Context, g *run) (dib.Result, error) {
	result := dib.Result{ExitCode: g.exit, Stopped: g.stopped, Output: ""}
	switch {
	case g.failed != "":
		return dib.Result{ExitCode: -1}, errors.Join(fmt.Errorf("%w: %s", dib.ErrGuard, g.failed), g.sweep())
	case g.stopped != "" && ctx.Err() != nil:
		return result, fmt.Errorf("%w: %w", dib.ErrStopped, context.Cause(ctx))
	case g.stopped != "":
		return result, fmt.Errorf("%w: %s", dib.ErrStopped, g.stopped)
	}
	return result, nil
}

func (d *Daemon) alive() error {
	select {
	case <-d.dead:
		return ErrCrashed
	default:
		return nil
	}
}

// lease and renewAfter are those of a real daemon.
func lease(r dib.Run) time.Duration {
	if r.Lease == nil {
		return 0
	}
	return max(r.Lease(), 1)
}

func renewAfter(lease time.Duration) time.Duration {
	if lease == 0 {
		return time.Hour
	}
	return max(lease/6, 50*time.Millisecond)
}

// patience is how long a guard has to clean up behind a daemon that died.
const patience = dib.DefaultGrace + 15*time.Second

// Reclaim implements dib.Host.
func (d *Daemon) Reclaim(ctx context.Context, p dib.Processes, scratch dib.Scratch) error {
	if g := d.find(p); g != nil {
		wait := clock.NewTimer(ctx, patience)
		defer wait.Stop()
		select {
		case <-g.ended:
		case <-d.dead:
			return ErrCrashed
		case <-wait.C:
			g.kill("a builder reclaims it")
		}
		d.awake()
	}
	if err := d.alive(); err != nil || scratch.Dir == "" {
		return err
	}
	return os.RemoveAll(d.at(scratch.Dir))
}
