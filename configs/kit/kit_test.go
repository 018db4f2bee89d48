package kit_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/configs/kit"
)

// Catches a Sleep that returns early, or late.
func TestSleepLastsAsLongAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{-time.Second, 0, time.Hour} {
			began := time.Now()
			if err := kit.Sleep(t.Context(), d); err != nil {
				t.Error(err)
			}
			if slept := time.Since(began); slept != max(d, 0) {
				t.Errorf("slept %s, want %s", slept, d)
			}
		}
	})
}

// Catches a Sleep that does not heed its context, or hides why that has ended.
func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("session is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		began := time.Now()
		if err := kit.Sleep(ctx, time.Hour); !errors.Is(err, why) {
			t.Errorf("%v, want %v", err, why)
		}
		if slept := time.Since(began); slept != time.Minute {
			t.Errorf("slept %s", slept)
		}
	})
}

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
