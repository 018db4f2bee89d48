package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Of providers where no launcher tries uploads it is told once, after a while, and once when
// that is over. Mistakes: a line a round; a line for a launcher that is started anew; one
// provider that hides another; what is told again after it was over without having been told.
func TestUnmanned(t *testing.T) {
	u := unmanned{since: map[string]time.Time{}, told: map[string]bool{}}
	began := time.Now()
	type said struct {
		Told, Over []string
		Next       time.Duration // from the beginning
	}
	for i, test := range []struct {
		at        time.Duration
		providers []string
		want      said
	}{
		{0, nil, said{}},
		{0, []string{"north"}, said{Next: startTime}},
		{time.Second, nil, said{}}, // it was started anew
		{2 * time.Second, []string{"north", "south"}, said{Next: startTime + 2*time.Second}},
		{3 * time.Second, []string{"east", "north", "south"}, said{Next: startTime + 2*time.Second}},
		{startTime + 2*time.Second, []string{"east", "north", "south"}, said{Told: []string{"north", "south"}, Next: startTime + 3*time.Second}},
		{startTime + 3*time.Second, []string{"east", "north", "south"}, said{Told: []string{"east"}}},
		{time.Hour, []string{"east", "north", "south"}, said{}},
		{2 * time.Hour, []string{"north"}, said{Over: []string{"east", "south"}}},
		{3 * time.Hour, []string{"south"}, said{Over: []string{"north"}, Next: 3*time.Hour + startTime}},
	} {
		var got said
		var next time.Time
		if got.Told, got.Over, next = u.look(test.providers, began.Add(test.at)); !next.IsZero() {
			got.Next = next.Sub(began)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", i, diff)
		}
	}
}
