package series

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// drawn has a world without agents draw its faults.
func drawn(t *testing.T, number uint64, wanted ...int) (lines []string) {
	t.Helper()
	var set map[int]bool
	if wanted != nil {
		set = map[int]bool{}
	}
	for _, n := range wanted {
		set[n] = true
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSeed(number, set)
		for f := range s.Faults(4*time.Second, time.Minute) {
			s.Fault("cut", "a1", "for %d", f.Rand.IntN(1000))
		}
		if took := s.Age(); took != time.Minute {
			t.Errorf("the faults took %s", took)
		}
		lines = s.Lines()
	})
	return lines
}

// Mistakes: to leave a fault out changes others, or leaves them all; two seeds have the same.
func TestFaultsAreAList(t *testing.T) {
	all := drawn(t, 7)
	if len(all) < 8 || len(all) > 30 {
		t.Fatalf("%d faults a minute, %s apart", len(all), 4*time.Second)
	}
	if want, got := []string{all[2], all[3]}, drawn(t, 7, 3, 4); !slices.Equal(got, want) {
		t.Errorf("only 3 and 4:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := drawn(t, 7, 0); len(got) > 0 {
		t.Errorf("none: %q", got)
	}
	if slices.Equal(all, drawn(t, 8)) {
		t.Error("two seeds have the same faults")
	}
	if !strings.Contains(all[0], "FAULT 1: cut for ") {
		t.Error(all[0])
	}
}

// Mistakes: what Ranges writes is read as something else.
func TestRangesAreReadAsTheyAreWritten(t *testing.T) {
	for _, list := range [][]int{nil, {1}, {1, 2, 3}, {3, 1, 2, 7, 9, 10, 10}} {
		text := Ranges(list)
		got, err := Numbers(text)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Compact(slices.Sorted(slices.Values(list)))
		if !slices.Equal(got, want) {
			t.Errorf("%v is written %q and read %v", list, text, got)
		}
	}
	for _, bad := range []string{"x", "3-1", "1-", "-"} {
		if _, err := Numbers(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// Mistakes: one thing comes twice before another came; each round, or each seed, has the same order.
func TestDealtFaultsLeaveNoneOut(t *testing.T) {
	const n = 20
	deal := func(seed uint64, round int) (got []int) {
		for turn := range n {
			got = append(got, newSeed(seed, nil).Deal(Fault{Number: round*n + turn + 1}, n))
		}
		return got
	}
	first := deal(7, 0)
	for _, got := range [][]int{first, deal(7, 1), deal(8, 0)} {
		if len(slices.Compact(slices.Sorted(slices.Values(got)))) != n {
			t.Errorf("%v are dealt of %d", got, n)
		}
	}
	if !slices.Equal(first, deal(7, 0)) || slices.Equal(first, deal(7, 1)) || slices.Equal(first, deal(8, 0)) {
		t.Error("the order is not the seed's and the round's")
	}
}
