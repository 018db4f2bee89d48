package sim

import (
	"testing"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
)

// Mistakes: whatever the judge knows to be wrong.
func TestLocks(t *testing.T) { series.Run(t, 10, run, demands()...) }

// demands: the fixed seeds have each fault of hosts, networks and servers.
func demands() (list []series.Demand) {
	for _, fault := range append(stage.Faults(), stage.CameTwice) {
		list = append(list, series.Demand{What: fault, Hours: 5})
	}
	return list
}
