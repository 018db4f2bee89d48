package web

import (
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel/listing"
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
	return when{Ago: listing.Span(now.Sub(t)), At: t.UTC().Format(time.RFC3339)}
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
