package zktest

import (
	"fmt"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. It is ample for a busy host, since it
// only passes when a test fails.
const patience = 3 * time.Minute

// longestWait is how long Eventually waits between two looks that cost nothing.
const longestWait = 50 * time.Millisecond

// Eventually polls cond until it is true, and fails the test if that takes too
// long; what, a format for args, says what was waited for. It waits as long as a
// look takes, too, so that one that starts a program leaves half of a core to others.
func Eventually(tb testing.TB, cond func() bool, what string, args ...any) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; ; wait = min(2*wait, longestWait) {
		began := time.Now()
		if cond() {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not in %s: %s", patience, fmt.Sprintf(what, args...))
		}
		timer := time.NewTimer(max(wait, min(time.Since(began), time.Second)))
		select {
		case <-timer.C:
		case <-tb.Context().Done():
			timer.Stop()
			tb.Fatalf("test ended while waiting: %s", fmt.Sprintf(what, args...))
		}
	}
}

// Await receives from c, and fails the test if that takes too long; what, a format for args,
// says what was waited for. Without a bound a test that went wrong would tell nothing for as
// long as all tests may take.
func Await[T any](tb testing.TB, c <-chan T, what string, args ...any) (v T) {
	tb.Helper()
	select {
	case v = <-c:
		return v
	case <-time.After(patience):
	case <-tb.Context().Done():
	}
	tb.Fatalf("not in %s: %s", patience, fmt.Sprintf(what, args...))
	return v
}
