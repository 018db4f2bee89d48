package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
)

// when is a moment for people: how long ago, and exactly.
type when struct {
	Ago, At string // both "" when it is not known
}

// moment is how long before now a time was.
func moment(t, now time.Time) when {
	if t.IsZero() {
		return when{}
	}
	return when{Ago: span(now.Sub(t)), At: t.UTC().Format(time.RFC3339)}
}

// changed is when a record's state changed, or it was written last.
func changed(state zkmodel.Epoch, written time.Time) time.Time {
	if state == 0 {
		return written
	}
	return state.Time()
}

// span is a length of time in the two units that matter.
func span(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 10*60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 60*60:
		return fmt.Sprintf("%dm", s/60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh %dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

// size is a number of bytes for people; "" for none.
func size(n int64) string {
	if n <= 0 {
		return ""
	}
	return humanize.IBytes(uint64(n))
}

// seconds is a length of time from a record, which may hold anything.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 60 * 60
	return time.Duration(max(0, min(s, year)) * float64(time.Second))
}

// badge is a state, with what it means for the eye.
type badge struct {
	Text string
	Kind string // good, busy, bad or off: a class of the style sheet
}

// broken is what stands for the state of a record that cannot be read.
const broken = "broken"

// stateBadge is a record's state.
func stateBadge[S ~string](state S, unreadable error) badge {
	if unreadable != nil {
		return badge{broken, "bad"}
	}
	return badge{string(state), kinds[string(state)]}
}

// kinds are those of the states; a state that we do not know has none.
var kinds = map[string]string{
	"ready": "good", "fulfilled": "good", "in-use": "good", "running": "good",
	"building": "busy", "uploading": "busy", "init": "busy", "testing": "busy",
	"requested": "busy", "pending": "busy", "initializing": "busy",
	"failed": "bad", "aborted": "bad",
	"deleting": "off", "deleted": "off", "used": "off", "hold": "off", "paused": "off", "stopped": "off",
}

// why is a record's reason, or why it cannot be read.
func why(reason string, unreadable error) string {
	if unreadable != nil {
		return unreadable.Error()
	}
	return reason
}

// inARow tells of failures that repeat.
func inARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf("%d in a row", failures)
}

// nextTry says when something that failed is tried again; "" when nobody said, or
// it only waits for somebody to do it.
func nextTry(at zkmodel.Epoch, now time.Time) string {
	if wait := at.Time().Sub(now); at != 0 && wait > 0 {
		return "next try in " + span(wait)
	}
	return ""
}

// words joins what is not empty.
func words(between string, parts ...string) string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return strings.Join(some, between)
}
