package builders

import (
	"math/rand/v2"
	"slices"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/dib"
	"poolkeeper/zkmodel"
)

// aim is a fault, and what the builder does when it comes: a step, or one of some.
type aim struct {
	fault string
	at    []step.Step
}

// aims are a crash at each step, and each fault while a builder does each kind of thing.
func aims() (list []aim) {
	for _, s := range step.All() {
		list = append(list, aim{"crash", []step.Step{s}})
	}
	for _, fault := range append(ofProcesses(), "garble") {
		for _, what := range kinds(step.All()) {
			list = append(list, aim{fault, slices.DeleteFunc(step.All(), func(s step.Step) bool { return s.Of() != what })})
		}
	}
	return list
}

// armed is a fault that comes when a builder comes to a step, whichever it is.
type armed struct {
	at    step.Step
	fault string
	rng   *rand.Rand
}

// patience is how long a fault waits for its step.
const patience = 40 * time.Minute

// take has the n-th of all aims wait for its step. One seed goes on where the last has ended, so that a set
// of them has taken each.
func (w *world) take(n int) {
	all := aims()
	one := all[(int(w.seed.Number%uint64(len(all)))*armedCards+n)%len(all)]
	w.arm(&armed{one.at[w.rng.IntN(len(one.at))], one.fault, w.own()})
}

// arm has a fault wait for a step, and has that step come soon.
func (w *world) arm(a *armed) {
	w.judge.Fault("armed", "builders", "%s at %s", a.fault, a.at)
	w.waits(a)
	w.lead(a.at)
}

// waits has a fault wait for its step, for a while.
func (w *world) waits(a *armed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = append(w.armed, a)
	time.AfterFunc(patience, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.armed = slices.DeleteFunc(w.armed, func(one *armed) bool { return one == a })
	})
}

// calm has none wait any more.
func (w *world) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = nil
}

// reached takes the first fault that waits for a step; nil is none.
func (w *world) reached(at step.Step) *armed {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.armed, func(a *armed) bool { return a.at == at })
	if i < 0 {
		return nil
	}
	a := w.armed[i]
	w.armed = slices.Delete(w.armed, i, i+1)
	return a
}

// lead does what brings a builder to a step.
func (w *world) lead(to step.Step) {
	image := images[w.rng.IntN(len(images))]
	switch to {
	case step.BuildFailed:
		for _, host := range w.hosts {
			w.builds(host, dib.Breaks, 1, 2*time.Minute)
		}
		w.operation("request", image)
	case step.UploadFailed:
		w.troubled(clouds[w.rng.IntN(len(clouds))], cloud.Refused, 1, 8*time.Minute)
	case step.ReclaimCloud, step.ReclaimUpload:
		w.waits(&armed{step.UploadSent, "crash", w.own()})
	case step.DeleteMarked, step.DeleteCloud, step.DeleteUpload:
		w.operation("delete upload", image)
	case step.BuildMarked, step.BuildDeleted, step.FilesRemoved:
		w.operation("delete build", image)
	default: // uploads come often enough; of builds too many would be as bad as few
		if to.Of() == step.BuildReady.Of() && w.rng.IntN(2) == 0 {
			w.operation("request", image)
		}
	}
}

// states are those in which a person finds a record, by its kind, and the step at which one comes to be so.
var states = map[string]step.Step{
	"build " + string(zkmodel.BuildBuilding): step.BuildRecorded,
	"build " + string(zkmodel.BuildReady):    step.BuildReady,
	"build " + string(zkmodel.BuildFailed):   step.BuildFailed,

	"upload " + string(zkmodel.UploadUploading): step.UploadRecorded,
	"upload " + string(zkmodel.UploadReady):     step.UploadReady,
	"upload " + string(zkmodel.UploadFailed):    step.UploadFailed,
}

// onRecords are what people do to a record in some state: spoil each, and delete those that have failed. Hardly any
// would be met by chance: few are failed, and not for long.
func onRecords() (list []string) {
	for state := range states {
		list = append(list, "garble "+state)
	}
	slices.Sort(list)
	return append(list, "delete build "+string(zkmodel.BuildFailed), "delete upload "+string(zkmodel.UploadFailed))
}
