package leak_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel/leak"
)

var errDown = errors.New("down")

// view says what it is asked, in order.
type view struct {
	said           *[]string
	barrier, whole error
}

func (v view) Barrier(context.Context) error {
	*v.said = append(*v.said, "barrier")
	return v.barrier
}

func (v view) Unread(path string) error {
	*v.said = append(*v.said, "unread "+path)
	return v.whole
}

// Catches a listing that is compared with a view of before it, or with one that is not
// whole: either takes for leaked what has a record.
func TestListComesBeforeTheView(t *testing.T) {
	for name, tc := range map[string]struct {
		list, barrier, whole error
		said                 string
		listed               int
	}{
		"all is well":           {said: "list, barrier, unread /nodes", listed: 2},
		"the cloud fails":       {list: errDown, said: "list"},
		"the view fails":        {barrier: errDown, said: "list, barrier"},
		"a record is not known": {whole: errDown, said: "list, barrier, unread /nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			list := func(context.Context) ([]string, error) {
				said = append(said, "list")
				return []string{"a", "b"}, tc.list
			}
			got, err := leak.List(t.Context(), "machines", list, view{&said, tc.barrier, tc.whole}, "/nodes")
			if text := strings.Join(said, ", "); text != tc.said || len(got) != tc.listed || (err == nil) != (tc.listed > 0) {
				t.Errorf("%s; listed %q (%v)", text, got, err)
			}
		})
	}
}

// Catches a leak that is taken for proven by one search, too soon, or by a search that
// was long ago or in the future; and one that is never proven.
func TestConfirmTakesTwoSearches(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		before map[string]time.Time
		age    time.Duration
		proven bool
		since  time.Duration // that is remembered
	}{
		"first":                    {nil, 0, false, 0},
		"of another":               {map[string]time.Time{"b": now.Add(-time.Minute)}, 0, false, 0},
		"second":                   {map[string]time.Time{"a": now.Add(-time.Minute)}, 0, true, time.Minute},
		"second at once":           {map[string]time.Time{"a": now}, 0, true, 0},
		"too soon":                 {map[string]time.Time{"a": now.Add(-time.Minute)}, 2 * time.Minute, false, time.Minute},
		"old enough":               {map[string]time.Time{"a": now.Add(-2 * time.Minute)}, 2 * time.Minute, true, 2 * time.Minute},
		"long ago":                 {map[string]time.Time{"a": now.Add(-2 * time.Hour)}, time.Minute, false, 0},
		"long ago, but slow ones":  {map[string]time.Time{"a": now.Add(-2 * time.Hour)}, 90 * time.Minute, true, 2 * time.Hour},
		"a late tick of slow ones": {map[string]time.Time{"a": now.Add(-3*time.Hour - time.Second)}, 90 * time.Minute, true, 3*time.Hour + time.Second},
		"of the future":            {map[string]time.Time{"a": now.Add(time.Minute)}, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kept, proven := leak.Confirm([]string{"a"}, func(s string) string { return s }, tc.before, now, tc.age)
			if got := len(proven) == 1; got != tc.proven {
				t.Errorf("proven: %t", got)
			}
			if since := now.Sub(kept["a"]); since != tc.since || len(kept) != 1 {
				t.Errorf("remembers %v since %s, want %s", slices.Collect(maps.Keys(kept)), since, tc.since)
			}
		})
	}
}

// Catches one leak's age that counts for another: each has its own.
func TestConfirmKeepsLeaksApart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var found []int
	before := map[string]time.Time{}
	for i := range 10 {
		found = append(found, i)
		if i%2 == 0 {
			before[fmt.Sprint(i)] = now.Add(-time.Minute)
		}
	}
	_, proven := leak.Confirm(found, func(i int) string { return fmt.Sprint(i) }, before, now, time.Minute)
	if !slices.Equal(proven, []int{0, 2, 4, 6, 8}) {
		t.Errorf("%v", proven)
	}
}
