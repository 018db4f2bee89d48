package presence

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
)

const (
	// attendanceWindow is over how many seconds it is counted how long requests were
	// served, and attendanceLeast how many of these are enough.
	attendanceWindow = 30
	attendanceLeast  = 15
)

// Stage is how far a session has come; warnings name it.
type Stage string

// The stages, by what is waited for.
const (
	WaitSession  Stage = "a session with ZooKeeper"
	WaitTree     Stage = "the tree to be read"
	WaitRegister Stage = "our own pools among the components"
	Serving      Stage = "nothing"
)

// Attendance is how much of the time ZooKeeper lets us serve. A session that comes and
// goes serves nobody, though each loss by itself is soon over. Any goroutine may use it.
type Attendance struct {
	log      hclog.Logger
	stage    atomic.Pointer[Stage]
	sessions atomic.Int64 // how many there were
}

// NewAttendance makes an Attendance of a launcher that waits for its first session.
func NewAttendance(log hclog.Logger) *Attendance {
	a := &Attendance{log: log}
	a.Enter(WaitSession)
	return a
}

// Enter notes the stage that has begun. A session begins with WaitTree.
func (a *Attendance) Enter(stage Stage) {
	a.stage.Store(&stage)
	if stage == WaitTree {
		a.sessions.Add(1)
	}
}

// Serving reports whether requests are served.
func (a *Attendance) Serving() bool { return *a.stage.Load() == Serving }

// Watch warns while requests wait because ZooKeeper does not let us serve them, until
// ctx ends.
func (a *Attendance) Watch(ctx context.Context) {
	tick := clock.NewTicker(ctx, time.Second)
	defer tick.Stop()
	var seconds window
	sessions := a.sessions.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stage := *a.stage.Load()
		warn, good := seconds.note(stage == Serving)
		if !warn {
			continue
		}
		now := a.sessions.Load()
		a.log.Warn("Requests wait, as ZooKeeper does not let us serve them; they are served once a session lasts",
			"waits_for", stage, "served", fmt.Sprintf("%d of the last %d s", good, attendanceWindow), "new_sessions", now-sessions)
		sessions = now
	}
}

// window counts in how many of the last seconds requests were served.
type window struct {
	idle   [attendanceWindow]bool // the seconds in which they were not; a ring
	second int
	told   int // seconds since a warning; 0 when there was none of late
}

// note counts one more second. It tells whether to warn, and how many of the last
// seconds were good.
func (w *window) note(served bool) (warn bool, good int) {
	w.idle[w.second%attendanceWindow] = !served
	w.second++
	for _, idle := range w.idle {
		if !idle {
			good++
		}
	}
	if w.told > 0 {
		w.told++
	}
	if good > attendanceLeast {
		if good == attendanceWindow {
			w.told = 0
		}
		return false, good
	}
	if w.told > 0 && w.told <= attendanceWindow {
		return false, good
	}
	w.told = 1
	return true, good
}
