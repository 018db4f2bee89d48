package main

import (
	"context"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// sick is how long a daemon may leave a question for a sign of life open.
const sick = 10 * time.Second

// checker is a daemon that can tell how it is.
type checker interface {
	// Ready is nil when the daemon does its work, or why it does not.
	Ready() error
	// Check asks for a sign of life, until ctx ends.
	Check(ctx context.Context) error
}

// tellSystemd tells the service manager, if one asks for it, when the daemon is
// ready and, as its watchdog wants, that it lives, until ctx ends.
func tellSystemd(ctx context.Context, s site, d checker) {
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("systemd's watchdog is configured wrongly", "error", err)
	}
	every := time.Second // until it is ready
	if interval > 0 {
		every = min(every, interval/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	ready := false
	for {
		select {
		case <-ctx.Done():
			notify(s, systemd.SdNotifyStopping)
			return
		case <-tick.C:
		}
		if !ready && d.Ready() == nil {
			ready = notify(s, systemd.SdNotifyReady)
			if interval == 0 || !ready {
				<-ctx.Done() // nobody asks for more
				notify(s, systemd.SdNotifyStopping)
				return
			}
		}
		asking, cancel := context.WithTimeout(ctx, min(sick, max(interval, every)))
		if d.Check(asking) == nil {
			notify(s, systemd.SdNotifyWatchdog)
		}
		cancel()
	}
}

// notify tells the service manager a word; false when there is none.
func notify(s site, state string) bool {
	told, err := systemd.SdNotify(false, state)
	if err != nil {
		s.log.Warn("Cannot tell systemd", "error", err)
	}
	return told
}
