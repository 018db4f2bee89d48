package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLeaseRunsOut: without answers the lease ends a time-out after the last
// request that was surely heard, and events do not prolong it.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	var l lease
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	if l.left(start) < time.Hour {
		t.Error("a lease that was not granted runs out")
	}
	l.send(at(0))
	l.answer()
	l.grant(time.Second)
	l.send(at(100))
	l.send(at(200))
	if left := l.left(at(300)); left != 700*time.Millisecond {
		t.Errorf("%s left with two requests under way", left)
	}
	l.answer()
	if left := l.left(at(300)); left != 800*time.Millisecond {
		t.Errorf("%s left after the first answer", left)
	}
	l.restart() // the second answer is lost with the connection
	l.send(at(400))
	if left := l.left(at(400)); left != 700*time.Millisecond {
		t.Errorf("%s left on a new connection", left)
	}
	l.answer()
	if left := l.left(at(400)); left != time.Second {
		t.Errorf("%s left after its first answer", left)
	}
}

// Mistake: each of many requests is remembered while no answer comes, and the memory fills.
func TestLeaseRemembersSome(t *testing.T) {
	t.Parallel()
	var l lease
	start := time.Now()
	for n := range 1000 {
		l.send(start.Add(time.Duration(n) * time.Millisecond))
	}
	if got := len(l.marks); got != 200 {
		t.Errorf("%d of 1000 requests in a second are remembered, want one in %s", got, markEvery)
	}
}

// TestLeaseIsSafe: a server that answers requests in order, each some time after
// it was sent, is never trusted for longer than its own clock would allow.
func TestLeaseIsSafe(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	rapid.Check(t, func(t *rapid.T) {
		var l lease
		now := time.Now()
		var sent []time.Time // and not yet answered
		heard := now         // when the youngest request that was answered was sent
		l.send(now)
		l.answer()
		l.grant(timeout)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			if len(sent) > 0 && rapid.Bool().Draw(t, "answer") {
				heard, sent = sent[0], sent[1:]
				l.answer()
			} else {
				sent = append(sent, now)
				l.send(now)
			}
			left, bound := l.left(now), timeout-now.Sub(heard)
			if left > bound {
				t.Fatalf("trusted for %s, may be for %s", left, bound)
			}
			if left < bound-markEvery-30*time.Millisecond {
				t.Fatalf("trusted for %s only, could be for %s", left, bound)
			}
		}
	})
}
