package sim

import (
	"slices"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
)

// Of how many agent-hours a set of seeds must be to be held to what comes often, and to all.
const (
	fewHours  = 5 // the fixed seeds
	manyHours = 100
)

// toServers are faults that all agents meet; others meet one of them.
var toServers = []string{"lag", "leader change", "isolate", "kill"}

// faults are all that go wrong in this world.
func faults() []string { return append(stage.Faults(), "expire", "crash", "evict") }

// demands are what seeds have to reach: each fault, and each while one holds, or waits for, what each recipe gives.
func demands() (list []series.Demand) {
	add := func(hours float64, what string) {
		list = append(list, series.Demand{What: what, Hours: hours})
	}
	for _, what := range slices.Concat(faults(), []string{stage.CameTwice, "writes", "effects"}) {
		add(fewHours, what)
	}
	add(manyHours, "writes that the fence refused")
	for _, by := range ways() {
		hours := float64(manyHours)
		if by == lock { // half of all
			hours = fewHours
		}
		add(fewHours, "held: "+string(by))
		for _, fault := range faults() {
			for _, held := range []bool{true, false} {
				add(hours, fault+" "+standing{by, held}.String())
			}
		}
	}
	return list
}
