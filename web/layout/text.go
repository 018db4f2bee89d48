package layout

import (
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel/listing"
)

// When is a moment for people: how long ago, and exactly.
type When struct {
	Ago, At string // both "" when it is not known; At is RFC 3339
	UTC     string // as people read it
}

// Moment is how long before now a time was.
func Moment(t, now time.Time) When {
	if t.IsZero() {
		return When{}
	}
	t = t.UTC()
	return When{Ago: listing.Span(now.Sub(t)), At: t.Format(time.RFC3339), UTC: t.Format("2006-01-02 15:04:05 UTC")}
}

// Size is a number of bytes for people; "" for none.
func Size(n int64) string {
	if n <= 0 {
		return ""
	}
	return humanize.IBytes(uint64(n))
}

// Seconds is a length of time from a record, which may hold anything.
func Seconds(s float64) time.Duration {
	const year = 365 * 24 * 60 * 60
	return time.Duration(max(0, min(s, year)) * float64(time.Second))
}

// Badge is a state, with what it means for the eye.
type Badge struct {
	Text string
	Kind string // good, busy, late, bad or off: a class of the style sheet
}

// broken is what stands for the state of a record that cannot be read.
const broken = "broken"

// StateBadge is a record's state.
func StateBadge[S ~string](state S, unreadable error) Badge {
	if unreadable != nil {
		return Badge{broken, "bad"}
	}
	return Badge{string(state), kinds[string(state)]}
}

// kinds are those of the states; a state that we do not know has none.
var kinds = map[string]string{
	"ready": "good", "fulfilled": "good", "in-use": "good", "running": "good",
	"building": "busy", "uploading": "busy", "init": "busy", "testing": "busy",
	"requested": "busy", "pending": "busy", "initializing": "busy",
	"failed": "bad", "aborted": "bad",
	"deleting": "off", "deleted": "off", "used": "off", "hold": "off", "paused": "off", "stopped": "off",
}

// Mark makes a Badge.
func Mark(text, kind string) Badge { return Badge{Text: text, Kind: kind} }
