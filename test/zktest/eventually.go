package zktest

import (
	"fmt"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. It is ample, since it
// only passes when a test fails.
const patience = time.Minute

// Eventually polls cond until it is true, and fails the test if that takes too
// long; what, a format for args, says what was waited for.
func Eventually(tb testing.TB, cond func() bool, what string, args ...any) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not in %s: %s", patience, fmt.Sprintf(what, args...))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-tb.Context().Done():
			timer.Stop()
			tb.Fatalf("test ended while waiting: %s", fmt.Sprintf(what, args...))
		}
	}
}
