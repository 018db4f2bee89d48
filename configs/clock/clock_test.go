package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/configs/clock"
)

// late is a Source by which all takes a second longer than by the bubble's clock, so that a test
// sees which of the two was asked.
type late struct{}

func (late) Now() time.Time { return time.Now().Add(time.Hour) }

func (late) AfterFunc(d time.Duration, f func()) clock.Stopper {
	return time.AfterFunc(d+time.Second, f)
}

// bothClocks runs a test by the host's clock and by one that is late by more.
func bothClocks(t *testing.T, test func(t *testing.T, c clock.Clock, more time.Duration)) {
	t.Helper()
	t.Run("host", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, clock.Clock{}, 0) })
	})
	t.Run("own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, clock.From(late{}), time.Second) })
	})
}

// took fails the test unless f takes as long as want.
func took(t *testing.T, what string, want time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if got := time.Since(began); got != want {
		t.Errorf("%s took %s, want %s", what, got, want)
	}
}

// TestWaits catches a way to wait that does not go by its clock.
func TestWaits(t *testing.T) {
	bothClocks(t, func(t *testing.T, c clock.Clock, more time.Duration) {
		t.Helper()
		took(t, "Sleep", time.Minute+more, func() { _ = c.Sleep(t.Context(), time.Minute) })
		took(t, "After", time.Minute+more, func() { <-c.After(time.Minute) })
		timer := c.NewTimer(time.Minute)
		took(t, "a timer", time.Minute+more, func() { <-timer.C })
		timer.Reset(time.Minute)
		took(t, "a timer once more", time.Minute+more, func() { <-timer.C })
		ticker := c.NewTicker(time.Minute)
		for range 3 {
			took(t, "a tick", time.Minute+more, func() { <-ticker.C })
		}
		ticker.Stop()
		called := make(chan struct{})
		c.AfterFunc(time.Minute, func() { close(called) })
		took(t, "AfterFunc", time.Minute+more, func() { <-called })
		if c.AfterFunc(time.Minute, func() { t.Error("a call that was stopped") }).Stop() != true {
			t.Error("the stop of a call came too late")
		}
		began := c.Now()
		<-time.After(time.Hour)
		if c.Since(began) != time.Hour || c.Until(began) != -time.Hour {
			t.Errorf("an hour lasted %s and %s", c.Since(began), c.Until(began))
		}
	})
}

// TestTimersForget catches a timer that tells of a wait that was stopped or begun anew.
func TestTimersForget(t *testing.T) {
	bothClocks(t, func(t *testing.T, c clock.Clock, more time.Duration) {
		t.Helper()
		timer := c.NewTimer(time.Minute)
		<-time.After(time.Hour)
		if !timer.Reset(2 * time.Minute) {
			t.Error("a timer that nobody has heard did not wait")
		}
		took(t, "the wait that was begun anew", 2*time.Minute+more, func() { <-timer.C })
		if timer.Stop() {
			t.Error("a timer that was heard waited still")
		}
		timer.Reset(time.Minute)
		timer.Stop()
		ticker := c.NewTicker(time.Minute)
		<-time.After(time.Hour)
		ticker.Stop()
		<-time.After(time.Hour)
		select {
		case <-timer.C:
			t.Error("a timer that was stopped has told")
		case <-ticker.C:
			t.Error("a ticker that was stopped has told")
		default:
		}
	})
}

// TestDeadlines catches a deadline that is taken for a cancellation, by whom it was given or by
// what is derived, that loses its cause, or goes by another clock.
func TestDeadlines(t *testing.T) {
	because := errors.New("because")
	check := func(t *testing.T, what string, ctx context.Context, err, cause error) {
		t.Helper()
		select {
		case <-ctx.Done():
		default:
			t.Errorf("%s goes on", what)
		}
		if ctx.Err() != err || context.Cause(ctx) != cause { //nolint:errorlint // as package context has them
			t.Errorf("%s ended with %v, cause %v; want %v, %v", what, ctx.Err(), context.Cause(ctx), err, cause)
		}
	}
	bothClocks(t, func(t *testing.T, c clock.Clock, more time.Duration) {
		t.Helper()
		ctx, cancel := c.WithTimeoutCause(t.Context(), time.Minute, because)
		if at, ok := ctx.Deadline(); !ok || !at.Equal(c.Now().Add(time.Minute)) {
			t.Errorf("deadline %s, %v", at, ok)
		}
		child, cancelChild := context.WithCancel(ctx)
		inner, cancelInner := c.WithTimeout(ctx, time.Hour)
		took(t, "a context", time.Minute+more, func() { <-ctx.Done() })
		synctest.Wait()
		for what, one := range map[string]context.Context{"it": ctx, "a child": child, "a child with more time": inner} {
			check(t, what, one, context.DeadlineExceeded, because)
		}
		cancel()
		cancelChild()
		cancelInner()
		check(t, "one that is cancelled behind its end", ctx, context.DeadlineExceeded, because)

		plain, cancel := c.WithTimeout(t.Context(), time.Minute)
		took(t, "a plain context", time.Minute+more, func() { <-plain.Done() })
		check(t, "a plain one", plain, context.DeadlineExceeded, context.DeadlineExceeded)
		cancel()

		early, cancel := c.WithTimeout(t.Context(), time.Minute)
		cancel()
		check(t, "one that is cancelled", early, context.Canceled, context.Canceled)

		parent, end := context.WithCancelCause(t.Context())
		of, cancel := c.WithTimeout(parent, time.Minute)
		defer cancel()
		end(because)
		synctest.Wait()
		check(t, "one whose parent is cancelled", of, context.Canceled, because)
		if err := c.Sleep(of, time.Hour); !errors.Is(err, because) {
			t.Errorf("a sleep ended with %v", err)
		}
	})
}

// TestContextsCarryTheirClock catches a function that does not go by the clock of its context, and
// a context that loses it.
func TestContextsCarryTheirClock(t *testing.T) {
	bothClocks(t, func(t *testing.T, c clock.Clock, more time.Duration) {
		t.Helper()
		agent, cancel := context.WithCancel(clock.With(t.Context(), c))
		cancel()
		ctx := context.WithoutCancel(agent)
		took(t, "Sleep", time.Minute+more, func() { _ = clock.Sleep(ctx, time.Minute) })
		took(t, "After", time.Minute+more, func() { <-clock.After(ctx, time.Minute) })
		took(t, "a timer", time.Minute+more, func() { <-clock.NewTimer(ctx, time.Minute).C })
		took(t, "a tick", time.Minute+more, func() { <-clock.NewTicker(ctx, time.Minute).C })
		called := make(chan struct{})
		clock.AfterFunc(ctx, time.Minute, func() { close(called) })
		took(t, "AfterFunc", time.Minute+more, func() { <-called })
		bound, cancel := clock.WithTimeout(ctx, time.Minute)
		defer cancel()
		took(t, "a context", time.Minute+more, func() { <-bound.Done() })
		bound, cancel = clock.WithTimeoutCause(ctx, time.Minute, context.Canceled)
		defer cancel()
		took(t, "a context with a cause", time.Minute+more, func() { <-bound.Done() })
		now := c.Now()
		if !clock.Now(ctx).Equal(now) || clock.Since(ctx, now) != 0 || clock.Until(ctx, now) != 0 {
			t.Error("the time is another one")
		}
	})
}

// Catches a Sleep that returns early, or late.
func TestSleepLastsAsLongAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{-time.Second, 0, time.Hour} {
			began := time.Now()
			if err := clock.Sleep(t.Context(), d); err != nil {
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
		if err := clock.Sleep(ctx, time.Hour); !errors.Is(err, why) {
			t.Errorf("%v, want %v", err, why)
		}
		if slept := time.Since(began); slept != time.Minute {
			t.Errorf("slept %s", slept)
		}
	})
}
