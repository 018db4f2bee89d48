package dib

import (
	"context"
	"os"
	"strings"
	"time"
)

// ProcessID names a process for ever, also after its number was given to
// another or the machine was started again.
type ProcessID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`
}

// Processes are those of a run, as far as they must be found again.
type Processes struct {
	Guard ProcessID `json:"guard"`
}

func newProcessID(pid int) ProcessID {
	p, _ := readProcess(pid) // a process that is gone already matches nothing
	return ProcessID{PID: pid, Start: p.start, Boot: bootID()}
}

// bootID is different after each start of the machine.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// alive reports whether the very process still runs.
func (id ProcessID) alive() bool {
	p, err := readProcess(id.PID)
	return err == nil && id.Start != "" && p.start == id.Start && id.Boot == bootID()
}

// Reclaim ends what is left of a run whose daemon died, and sweeps its folder.
// The guard notices the daemon's end itself, and is given the time to clean up.
//
// Errors: ErrLeft, naming what is left.
func Reclaim(ctx context.Context, run Processes, scratch Scratch) error {
	deadline := time.NewTimer(DefaultGrace + guardPatience)
	defer deadline.Stop()
	patient := true
	for run.Guard.alive() && patient {
		again := time.NewTimer(10 * time.Millisecond)
		select {
		case <-again.C:
		case <-deadline.C:
			patient = false
		}
		again.Stop()
	}
	if run.Guard.alive() {
		killTree(ctx, run.Guard.PID)
	}
	return scratch.Sweep(ctx)
}
