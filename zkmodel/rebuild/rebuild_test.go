package rebuild

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A record that a host with a clock years ahead has written is as old as ZooKeeper
// says; one of a clock that is a little off, and one that is older than its last
// write, are as old as they say. Catches: rebuilds and back-off that wait for 2036,
// and back-off that counts from a write before the failure.
func TestSince(t *testing.T) {
	written := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now := written.Add(10 * time.Minute)
	for name, test := range map[string]struct{ told, want time.Time }{
		"years ahead":              {written.AddDate(10, 0, 0), written},
		"a little ahead":           {now.Add(30 * time.Second), now.Add(30 * time.Second)},
		"just failed, not saved":   {now, now},
		"before the last write":    {written.Add(-time.Hour), written.Add(-time.Hour)},
		"as ZooKeeper has it":      {written, written},
		"no time":                  {time.Unix(0, 0), written},
		"the time of no clock":     {time.Unix(1, 0), written},
		"ahead of what is thought": {now.Add(2 * time.Minute), written},
	} {
		told := zkmodel.EpochOf(test.told)
		if got := Since(told, zkmodel.NoLater(told, recipe.Stat{Mtime: written}), now); got.Sub(test.want).Abs() > time.Millisecond {
			t.Errorf("%s: since %s, want %s", name, got, test.want)
		}
	}
}

// Images with one schedule are due in another order each time, spread over the jitter, at the same
// moment for builders in all time zones. Catches: the same image that is always the last.
func TestJitterChangesEachTime(t *testing.T) {
	zone := time.FixedZone("far", 5*3600)
	orders := map[string]bool{}
	for day := range 20 {
		due := time.Date(2026, 11, 1+day, 3, 0, 0, 0, time.UTC)
		names := []string{"centos", "debian", "fedora", "ubuntu"}
		at := map[string]time.Duration{}
		for _, name := range names {
			image := &configs.DiskImage{Name: name, RebuildJitter: 10}
			at[name] = delay(image, due, due.Add(24*time.Hour))
			if other := delay(image, due.In(zone), due.Add(24*time.Hour)); other != at[name] || at[name] < 0 || at[name] >= 144*time.Minute {
				t.Errorf("%s on day %d: %s, in another zone %s", name, day, at[name], other)
			}
		}
		slices.SortFunc(names, func(a, b string) int { return int(at[a] - at[b]) })
		orders[strings.Join(names, " ")] = true
	}
	if len(orders) < 5 {
		t.Errorf("only %d orders in 20 days: %v", len(orders), orders)
	}
}
