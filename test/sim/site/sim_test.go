package site

import (
	"flag"
	"testing"

	"poolkeeper/test/sim/series"
)

var logs = flag.Bool("sim.logs", false, "have what launchers log in the timeline")

// Mistakes: whatever the judge knows to be wrong.
func TestSite(t *testing.T) { series.Run(t, 2, run, demands()...) }
