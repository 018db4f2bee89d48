package stage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Mistakes: a timeline whose hash does not tell it from another, or tells it from itself.
func TestHashIsOfTheWholeTimeline(t *testing.T) {
	hash := func(notes ...string) (sum string) {
		synctest.Test(t, func(*testing.T) {
			line := NewTimeline()
			for _, note := range notes {
				line.Note("a", "%s", note)
			}
			sum = line.Hash()
		})
		return sum
	}
	seen := map[string]string{}
	for _, notes := range [][]string{nil, {"a"}, {"a", "b"}, {"b", "a"}, {"ab"}} {
		h := hash(notes...)
		if seen[h] != "" {
			t.Errorf("%v has the hash of %s", notes, seen[h])
		}
		if again := hash(notes...); again != h {
			t.Errorf("%v has the hashes %s and %s", notes, h, again)
		}
		seen[h] = fmt.Sprint(notes)
	}
}

// Mistakes: lines, wrongs and the numbers of faults that are not those that were added.
func TestTimelineTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := NewTimeline()
		line.Turn(3)
		line.Fault("cut", "a1", "for %d", 5)
		line.Fault("cut", "a2", "")
		line.Turn(7)
		line.Fault("kill", "a2", "")
		<-time.After(time.Second)
		line.Note("a1", "failed: %v", errors.New("x"))
		line.Wrong("a1", "says %q", "no")
		line.Note("a1", "goes on")
		want := []string{
			"    0.000000s a1       FAULT 3: cut for 5", "    0.000000s a2       FAULT 3: cut", "    0.000000s a2       FAULT 7: kill",
			"    1.000000s a1       failed: x", `    1.000000s a1       WRONG: says "no"`, "    1.000000s a1       goes on",
		}
		if got := line.Lines(); !slices.Equal(got, want) {
			t.Errorf("lines:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := line.Wrongs(); !slices.Equal(got, want[4:5]) {
			t.Errorf("wrongs %q", got)
		}
		if got, led := line.LeadUp(), strings.Join(want[:5], "\n"); got != led {
			t.Errorf("lead-up:\n%s", got)
		}
		if got := line.Faults(); !slices.Equal(got, []int{3, 7}) {
			t.Errorf("faults %v", got)
		}
		if got := Sorted(line.Counts()); got != "cut 2, kill 1" {
			t.Errorf("counts %s", got)
		}
	})
}
