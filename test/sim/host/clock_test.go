package host_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/sim/host"
)

func newClock(seed uint64) *host.Clock { return host.NewClock(rand.New(rand.NewPCG(seed, 0))) }

func pass(d time.Duration) { <-time.After(d) }

// Mistakes: a timer that fires during a pause, is lost by it, or fires though it was stopped; a
// pause that stops another host; an order of what was due that is always the same, or not the
// seed's.
func TestPause(t *testing.T) {
	orders := map[string]bool{}
	run := func(t *testing.T, seed uint64) (order string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			paused, other := newClock(seed), newClock(seed)
			told := ""
			for _, name := range []string{"a", "b", "c", "d"} {
				clock.From(paused).AfterFunc(time.Second, func() { told += name })
			}
			never := clock.From(paused).AfterFunc(time.Second, func() { told += "!" })
			late := clock.From(paused).NewTimer(time.Hour)
			goes := clock.From(other).NewTimer(time.Second)
			paused.Pause()
			pass(time.Minute)
			synctest.Wait()
			select {
			case <-goes.C:
			default:
				t.Error("the pause of one host stops another")
			}
			if told != "" {
				t.Errorf("%q fired during a pause", told)
			}
			if !never.Stop() {
				t.Error("what was due, and withheld, cannot be stopped")
			}
			paused.Resume(synctest.Wait)
			order = told
			if len(told) != 4 {
				t.Errorf("%q fired behind the pause, want four", told)
			}
			pass(time.Hour)
			if at := <-late.C; at.Sub(paused.Now()) > 0 {
				t.Error("a timer fired early")
			}
		})
		return order
	}
	for seed := range uint64(20) {
		first := run(t, seed)
		if again := run(t, seed); again != first {
			t.Errorf("seed %d: order %s, and then %s", seed, first, again)
		}
		orders[first] = true
	}
	if len(orders) < 5 {
		t.Errorf("20 seeds give %d orders", len(orders))
	}
}

// Mistakes: a wall clock that cannot be set, or whose setting is seen by what measures time, as no
// host shows it; times that package time does not read as they were meant.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(0)
		if now := c.Now(); !now.Equal(time.Now()) || now.String() == now.Round(0).String() {
			t.Fatalf("a clock that was not set shows %s, it is %s", now, time.Now())
		}
		before, timer := c.Now(), clock.From(c).NewTimer(time.Hour)
		c.Set(-24 * time.Hour)
		pass(time.Minute)
		after := c.Now()
		if took := after.Sub(before); took != time.Minute {
			t.Errorf("a minute took %s", took)
		}
		if wall := after.Round(0).Sub(before.Round(0)); wall != time.Minute-24*time.Hour {
			t.Errorf("the wall clock was moved by %s", wall)
		}
		if want := time.Now().Add(-24 * time.Hour); fmt.Sprint(after.UTC().Round(0)) != fmt.Sprint(want.UTC()) {
			t.Errorf("it shows %s, want %s", after, want)
		}
		pass(time.Hour - time.Minute)
		synctest.Wait()
		select {
		case <-timer.C:
		default:
			t.Error("a timer waits for the wall clock")
		}
	})
}
