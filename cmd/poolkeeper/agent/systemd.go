package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"poolkeeper/builder"
)

// lookEvery is how often the service manager is told anew how the daemon is, if
// that has changed.
const lookEvery = time.Second

// extend gives a daemon that waits for ZooKeeper time to start: it may wait for
// as long as that takes, and says so again before the time is over.
const extend = "EXTEND_TIMEOUT_USEC=30000000"

// checker is a daemon that can tell how it is.
type checker interface {
	// Ready is nil when the daemon does its work, or why it does not.
	Ready() error
	// Check asks for a sign of life, until ctx ends.
	Check(ctx context.Context) error
}

// tellSystemd tells the service manager, if one listens, whether the daemon is
// ready and why not, and, as its watchdog wants, that it lives, until ctx ends.
func tellSystemd(ctx context.Context, s site, d checker) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("systemd's watchdog is configured wrongly", "error", err)
	}
	every := lookEvery
	if watchdog > 0 {
		every = min(every, watchdog/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	told, started := "", false
	for {
		state := stateOf(d)
		switch {
		case !started && hasStarted(d):
			started = true
			notify(s, systemd.SdNotifyReady+"\n"+state)
		case !started:
			notify(s, extend+"\n"+state)
		case state != told:
			notify(s, state)
		}
		told = state
		if watchdog > 0 && lives(ctx, d, watchdog) {
			notify(s, systemd.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			notify(s, systemd.SdNotifyStopping+"\n"+status("Stopping"))
			return
		case <-tick.C:
		}
	}
}

// hasStarted tells whether a daemon does its work, or all of it that its host allows:
// a unit whose disk is full has started.
func hasStarted(d checker) bool {
	err := d.Ready()
	return err == nil || errors.Is(err, builder.ErrWithdrawn)
}

// stateOf is a line for `systemctl status`.
func stateOf(d checker) string {
	if err := d.Ready(); err != nil {
		return status("Not ready: " + err.Error())
	}
	return status("Running")
}

// status is a status of one line, whatever errors it tells of.
func status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", "; ") }

// lives asks for a sign of life, for no longer than the service manager waits.
func lives(ctx context.Context, d checker, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.Check(ctx) == nil
}

// tellReload tells the service manager that the configuration is read again, and
// then, by the function it returns, how that ended. A daemon that is not ready
// has nothing to tell: that it reads again would end its start.
func tellReload(s site, d any) (ended func(error)) {
	if c, ok := d.(checker); !ok || !hasStarted(c) {
		return func(error) {}
	}
	notify(s, systemd.SdNotifyReloading+"\n"+systemd.SdNotifyMonotonicUsec())
	return func(err error) {
		state := stateOf(d.(checker)) //nolint:forcetypeassert // see above
		if err != nil {
			state = status("Running with the old configuration: " + err.Error())
		}
		notify(s, systemd.SdNotifyReady+"\n"+state)
	}
}

// notify tells the service manager something, if there is one.
func notify(s site, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		s.log.Warn("Cannot tell systemd", "error", err)
	}
}
