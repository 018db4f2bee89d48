package listing

import (
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                          "0s",
		59*time.Second + 999*time.Millisecond: "59s",
		9*time.Minute + 59*time.Second:        "9m 59s",
		10*time.Minute + time.Second:          "10m",
		time.Hour:                             "1h 0m",
		23*time.Hour + 59*time.Minute:         "23h 59m",
		24*time.Hour + 30*time.Minute:         "1d 0h",
		100 * 24 * time.Hour:                  "100d 0h",
	} {
		if got := Span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

// What failed is tried again some time; what is due waits for a worker, and
// has no time.
func TestNextTry(t *testing.T) {
	now := time.Unix(1795161300, 0)
	for at, want := range map[zkmodel.Epoch]string{
		0: "", 1795161299: "", 1795161300: "", 1795161390.5: "next try in 1m 30s",
	} {
		if got := nextTry(at, now); got != want {
			t.Errorf("next try at %f: %q, want %q", at, got, want)
		}
	}
}
