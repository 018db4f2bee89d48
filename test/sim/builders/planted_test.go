//go:build !wasip1

package builders

import (
	"testing"

	"poolkeeper/test/sim/series"
)

// planted are the mistakes that are compiled in on purpose, and what the judge says of each.
var planted = map[string]string{
	"deadline": "beside",                                       // a guard that ignores its lease, so that builds go on when their lock is lost
	"upload":   "has no record",                                // an image is made before its record says so
	"keep":     "that are to stay|takes the last ready upload", // none is kept but the newest
	"garbled":  "cannot be read since",                         // a record that cannot be read is taken for an empty one
	"reuse":    "is used a second time",                        // after a backup was restored
}

// Mistake: a simulation that finds nothing.
func TestPlantedBugsAreFound(t *testing.T) { series.FindPlanted(t, "TestBuilders", 8, 100, planted) }
