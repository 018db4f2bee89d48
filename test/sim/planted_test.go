//go:build !wasip1

package sim

import (
	"testing"

	"poolkeeper/test/sim/series"
)

// planted are the mistakes that are compiled in on purpose, and what the judge says of each.
var planted = map[string]string{
	"lease":  "acts for|writes",       // a lock is kept after its session expired
	"order":  "acts for|writes",       // two hold one lock
	"fence":  "writes",                // who has lost a lock goes on writing
	"orphan": "nothing is in its way", // a contender that nobody knows of is left at the head of the line
}

// Mistake: a simulation that finds nothing.
func TestPlantedBugsAreFound(t *testing.T) { series.FindPlanted(t, "TestLocks", 10, 100, planted) }
