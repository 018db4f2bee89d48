package rebuild

import (
	"testing"
	"time"

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
