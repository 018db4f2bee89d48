package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/cloud"
)

// openClouds makes the clouds, with what another installation has there.
func (w *world) openClouds() {
	w.clouds = cloud.New(cloud.Options{Seed: w.seed.Number, Told: func(e cloud.Event) {
		switch e.Op {
		case cloud.OpDeleteNode:
			w.judge.gone(e.ID, e.Fault)
		case cloud.OpCreate:
			w.judge.made(e.ID, e.Metadata[providers.MetaLaunch], e.Fault)
		}
	}})
	for _, name := range names {
		w.clouds.Room(name, rooms[name])
		for n := range foreigners {
			w.clouds.PlantNode(name, fmt.Sprint("foreign-", n), foreign(name, n))
		}
	}
}

// cloudFaults are what may go wrong with a cloud, and with how many of its calls.
var cloudFaults = map[cloud.Fault]float64{
	cloud.Error: 0.3, cloud.Refused: 0.3, cloud.Slow: 0.5, cloud.Hung: 0.2, cloud.Lost: 0.3, cloud.Late: 0.3, cloud.Fails: 0.8,
	cloud.Stale: 0.5, cloud.Duplicate: 0.3, cloud.More: 1, cloud.Less: 1,
}

// trouble has a cloud go wrong in one way, for a while.
func (w *world) trouble() {
	name, fault := w.someCloud(), sorted(cloudFaults)[w.rng.IntN(len(cloudFaults))]
	d := time.Duration(w.rng.Int64N(int64(3 * longest)))
	share, small := cloudFaults[fault], isSmall(w.seed.Number) && w.rng.IntN(2) == 0
	if small {
		fault, share = cloud.Fails, 1
	}
	switch fault {
	case cloud.Fails:
		d *= 5 // until each launcher has tried a request in vain
		if small {
			d += patience
		}
	case cloud.Hung:
		d *= 3 // until it meets one of each kind of call
	}
	w.judge.Fault("cloud "+string(fault), name, "for %s", d)
	w.clouds.Set(name, fault, share)
	time.AfterFunc(d, func() { w.clouds.Set(name, fault, 0) })
}

// vanish has a machine of ours go that nobody has deleted.
func (w *world) vanish() {
	name := w.someCloud()
	if w.clouds.VanishNode(name, w.site, w.rng) {
		w.judge.Fault("cloud vanish", name, "")
	}
}

// foreigners is how many machines another installation has in each of our accounts.
const foreigners = 2

// foreign is what machines carry that another installation has made in our account, beside the
// names of our own provider and of a node that we have, too.
func foreign(provider string, n int) map[string]string {
	return map[string]string{
		providers.MetaProvider: provider, providers.MetaSite: another, providers.MetaNode: fmt.Sprintf("%010d", n), providers.MetaPool: "main",
	}
}

// another is the name of another installation.
const another = "another"

// sorted are the keys of a map, in an order that no run changes.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
