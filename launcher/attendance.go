package launcher

import (
	"context"
	"fmt"
	"time"
)

const (
	// attendanceWindow is over how many seconds it is counted how long requests were
	// served, and attendanceLeast how many of these are enough.
	attendanceWindow = 30
	attendanceLeast  = 15
)

// attendance counts in how many of the last seconds requests were served. A session
// that comes and goes serves nobody, though each loss by itself is soon over.
type attendance struct {
	idle   [attendanceWindow]bool // the seconds in which they were not; a ring
	second int
	told   int // seconds since a warning; 0 when there was none of late
}

// note counts one more second. It tells whether to warn, and how many of the last
// seconds were good.
func (a *attendance) note(served bool) (warn bool, good int) {
	a.idle[a.second%attendanceWindow] = !served
	a.second++
	for _, idle := range a.idle {
		if !idle {
			good++
		}
	}
	if a.told > 0 {
		a.told++
	}
	if good > attendanceLeast {
		if good == attendanceWindow {
			a.told = 0
		}
		return false, good
	}
	if a.told > 0 && a.told <= attendanceWindow {
		return false, good
	}
	a.told = 1
	return true, good
}

// The stages of a session, as warnings name them.
const (
	stageSession  = "a session with ZooKeeper"
	stageTree     = "the tree to be read"
	stageRegister = "our own pools among the components"
	stageServing  = "nothing"
)

// stage notes what the launcher waits for.
func (l *Launcher) stage(name string) {
	l.waitsFor.Store(&name)
	if name == stageTree {
		l.sessions.Add(1)
	}
}

// watchAttendance warns while requests wait because ZooKeeper does not let us serve
// them, until ctx ends.
func (l *Launcher) watchAttendance(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var a attendance
	sessions := l.sessions.Load()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		warn, good := a.note(l.serving.Load())
		if !warn {
			continue
		}
		stage := stageSession
		if s := l.waitsFor.Load(); s != nil {
			stage = *s
		}
		now := l.sessions.Load()
		l.log.Warn("Requests wait, as ZooKeeper does not let us serve them; they are served once a session lasts",
			"waits_for", stage, "served", fmt.Sprintf("%d of the last %d s", good, attendanceWindow), "new_sessions", now-sessions)
		sessions = now
	}
}
