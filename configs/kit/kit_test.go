package kit_test

import (
	"regexp"
	"testing"
	"time"

	"poolkeeper/configs/kit"
)

// Catches pauses that do not double, exceed the longest, come to nothing after many
// failures (an overflow), or are all alike.
func TestBackoff(t *testing.T) {
	b := kit.Backoff{First: time.Second, Longest: 10 * time.Second}
	for failures, mean := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 1 << 30: 10 * time.Second,
	} {
		differ := map[time.Duration]bool{}
		for range 50 {
			got := b.After(failures)
			if got < mean*3/4 || got > mean*5/4+1 {
				t.Errorf("%s after %d failures, want %s give or take a quarter", got, failures, mean)
			}
			differ[got] = true
		}
		if len(differ) < 2 {
			t.Errorf("all pauses after %d failures are alike", failures)
		}
	}
}

// Catches ids of the wrong length or alphabet, and ids that come twice.
func TestRandomHex(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := kit.RandomHex(8)
		if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(id) || seen[id] {
			t.Fatalf("%q, after %d others", id, len(seen))
		}
		seen[id] = true
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2d": 48 * time.Hour, "1w": 168 * time.Hour, "1w1d": 192 * time.Hour, "1d12h": 36 * time.Hour, "30m": 30 * time.Minute, "1.5h": 90 * time.Minute,
		"": 0, "2": 0, "d": 0, "1d-1h": 0, "1h2d": 0, "99999d9": 0,
	} {
		if got, err := kit.ParseDuration(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
