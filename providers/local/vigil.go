package local

import (
	"fmt"
	"time"
)

// maxResets is how many resets of a guest that boots are no circle. An image may
// reboot itself once or twice, and its firmware adds one of its own each time.
const maxResets = 10

// vigil judges what is seen of a guest that boots. It does no I/O.
type vigil struct {
	patience time.Duration // how long nothing may happen at all; 0 is for ever
	resets   int
	console  int64     // bytes, when last seen
	quiet    time.Time // since when nothing has happened
}

// newVigil begins to watch. Silence counts from now on.
func newVigil(patience time.Duration, now time.Time) *vigil {
	return &vigil{patience: patience, quiet: now}
}

// event takes an event of QEMU's, and tells why the guest has failed, or "".
func (v *vigil) event(name string, data eventData) string {
	switch name {
	case "GUEST_PANICKED":
		return "the guest's kernel panicked (GUEST_PANICKED)"
	case "SHUTDOWN":
		return fmt.Sprintf("the machine was switched off (SHUTDOWN, %s)", data.Reason)
	case "RESET":
		if v.resets++; v.resets > maxResets {
			return fmt.Sprintf("the guest resets again and again (RESET, %d times)", v.resets)
		}
	}
	return ""
}

// state takes QEMU's run state, and tells why the guest has failed, or "".
func (v *vigil) state(status string) string {
	switch status {
	case "internal-error", "io-error", "guest-panicked", "shutdown", "watchdog":
		return fmt.Sprintf("QEMU is in state %q", status)
	}
	return ""
}

// sign takes the size of the console's log, and whether packets came from the
// guest since the last time.
func (v *vigil) sign(console int64, packets bool, now time.Time) {
	if packets || console != v.console {
		v.console, v.quiet = console, now
	}
}

// silent tells why a guest that does nothing has failed, or "".
func (v *vigil) silent(now time.Time) string {
	if still := now.Sub(v.quiet); v.patience > 0 && still >= v.patience {
		return fmt.Sprintf("the guest has written nothing on its console and sent no packet for %s", still.Round(time.Second))
	}
	return ""
}
