package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/buildlog"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
)

// ErrWithdrawn says that nothing can be built on this host, whatever the image. The
// builder leaves builds to others meanwhile; it uploads, deletes and cleans.
var ErrWithdrawn = errors.New("this builder has withdrawn from building")

// fitness is why this host cannot build, or is not to, "" while it can.
type fitness struct {
	// checking lets one check at a time pass from trying to publishing: of two at once,
	// the elder would else publish last.
	checking sync.Mutex

	mu  sync.Mutex
	why string
}

func (f *fitness) reason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// set changes the reason, and reports whether that is another now.
func (f *fitness) set(why string) (was string, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, f.why = f.why, why
	return was, was != why
}

// checkHost tries what every build needs before its command begins.
func (c *Control) checkHost(cfg *configs.Config) error {
	if _, err := buildlog.MakeDir(cfg.BuildLogDir); err != nil {
		return err
	}
	if err := c.images.Probe(); err != nil {
		return fmt.Errorf("use images-dir: %w", err)
	}
	return c.images.CheckSpace(cfg.BuildDiskReserve)
}

// CanBuild checks the host, and whether an operator has paused it, withdraws this builder from building or takes it back,
// and reports which.
func (c *Control) CanBuild() bool {
	c.fitness.checking.Lock()
	defer c.fitness.checking.Unlock()
	why, paused := c.Paused(), true
	if err := c.checkHost(c.Config()); err != nil && why == "" {
		why, paused = actions.Reason(err), false
	}
	was, changed := c.fitness.set(why)
	if !changed {
		return why == ""
	}
	c.Self.Withdraw(why)
	c.Metrics.Withdrawn(why != "")
	if (why == "") == (was == "") { // the same with other words: less room, say
		return why == ""
	}
	switch {
	case why != "" && paused:
		c.Log.Info("This builder is paused; builds are left to other builders", "reason", why)
	case why != "":
		c.Log.Error("This host cannot build; builds are left to other builders until it can", "reason", why)
	default:
		c.Log.Info("This host can build again", "before", was)
	}
	c.Wake()
	return why == ""
}

// watchHost looks now and then whether this host can build.
func (c *Control) watchHost(ctx context.Context) {
	tick := clock.NewTicker(ctx, c.HostEvery)
	defer tick.Stop()
	for {
		c.CanBuild()
		select {
		case <-tick.C:
		case <-c.recheck:
		case <-ctx.Done():
			return
		}
	}
}
