//go:build !wasip1

package site

import (
	"testing"

	"poolkeeper/test/sim/series"
)

// planted are the mistakes that are compiled in on purpose, and what the judge says of each.
var planted = map[string]string{
	"record":   "asks",                    // a machine is made before its record says so
	"watch":    "left over|not tidied up", // that a lock goes free is not seen
	"stale":    "deletes a machine",       // a deletion is decided by what was read before
	"garbled":  "cannot be read since",    // a record that cannot be read is taken for none
	"claim":    "both have|was promised",  // a ready node is given to a request although another has it
	"image":    "declines request",        // a request is declined for want of an image that is not seen yet
	"takeover": "had not taken request",   // what a launcher had in hand that died stays so
	"restore":  "for its own",             // a machine of a launch that was undone is taken for that of another
}

// Mistake: a simulation that finds nothing.
func TestPlantedBugsAreFound(t *testing.T) { series.FindPlanted(t, "TestSite", 15, 40, planted) }
