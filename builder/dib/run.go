package dib

import (
	"context"
	"time"
)

// DefaultGrace is how long a command that was asked to end may clean up.
const DefaultGrace = 4 * time.Second

// HasteGrace is that time when another may begin the same build at any moment.
// What the command then leaves, the sweep takes away.
const HasteGrace = 200 * time.Millisecond

// guardPatience is how much longer than the grace a guard may need to kill,
// sweep and report.
const guardPatience = 15 * time.Second

// Run is one run of a build command.
type Run struct {
	Guard   []string // the command that calls Guard; nil is our own binary with GuardCommand
	Argv    []string // of the build
	Env     []string // of the build, and nothing else
	Dir     string   // working directory; "" is ours, as relative paths in a configuration want it
	Scratch Scratch  // made here if it is a folder, swept at the end
	Log     string   // file that the output is appended to; "" gives its end to Result
	Secrets []string // masked in the log

	Grace time.Duration // between TERM and KILL; 0 is DefaultGrace
	// Lease is in how long from now the build has ended, to its last process,
	// without another word from us. It is asked again several times within that
	// time. Nil is for ever.
	Lease func() time.Duration
	// Haste, when set, reports whether the cause of ctx leaves the command no
	// more than HasteGrace.
	Haste func(cause error) bool
	// Grew, when set, is called when there is more in the log, a few times a second.
	Grew func()
	// Started, when set, is told of the processes before anything is built, so
	// that they can be found after a crash of ours.
	Started func(Processes) error
}

// Result is how a run ended.
type Result struct {
	ExitCode int    // 128 + n when signal n ended the command
	Stopped  string // why the guard ended it; "" when it ended by itself
	Left     string // what could not be cleaned up; "" when all could
	Output   string // the last 4 KiB at most, if there is no log
}

// lease is the time to grant now; 0 is for ever, so a lease that is over is
// the shortest there is.
func (r Run) lease() time.Duration {
	if r.Lease == nil {
		return 0
	}
	return max(r.Lease(), 1)
}

// renewAfter is when to renew a lease: early enough that a few slow moments
// do no harm.
func renewAfter(lease time.Duration) time.Duration {
	if lease == 0 {
		return time.Hour
	}
	return max(lease/6, 50*time.Millisecond)
}

// Host is a machine that commands run on.
type Host interface {
	// Do runs a command to its end, see Run.Do.
	Do(ctx context.Context, r Run) (Result, error)
	// Reclaim ends what is left of a run whose daemon died, see Reclaim.
	Reclaim(ctx context.Context, run Processes, scratch Scratch) error
	// Free is how many bytes may still be written to the disk that a folder is on.
	Free(dir string) (int64, error)
}

// Here is the machine that this process runs on.
type Here struct{}

// Do implements Host.
func (Here) Do(ctx context.Context, r Run) (Result, error) { return r.Do(ctx) }

// Reclaim implements Host.
func (Here) Reclaim(ctx context.Context, run Processes, scratch Scratch) error {
	return Reclaim(ctx, run, scratch)
}

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
