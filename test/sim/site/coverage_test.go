package site

import (
	"slices"
	"strings"

	"poolkeeper/launcher/step"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// Of how many agent-hours a set of seeds must be to be held to what comes often, to what comes every few days, and to all.
const (
	fewHours  = 20 // the fixed seeds
	someHours = 100
	manyHours = 1000
)

// Faults to one process, and to all of them, that may come while a call to a cloud is under way.
var (
	toProcess = []string{
		"cut", "cut up", "cut down", "pause", "break", "slow", "lost answer", "doubled events", "clock step", "expire", "stop", "reload",
	}
	toServers = []string{"lag", "leader change", "isolate", "kill", "reload all"}
)

// callKinds are what launchers ask clouds for.
var callKinds = []string{"create", "wait", "delete", "list", "limits"}

// met is what a fault is counted as that comes while a call is under way.
func met(fault, call string) string { return "fault " + fault + " during " + call }

// elsewhere says why launchers do not come to a step in this world; "" when they do.
func elsewhere(s step.Step) string {
	switch kind, _, _ := strings.Cut(string(s), ":"); kind {
	case "validation":
		return "no image of this world has checks"
	case "backing node":
		return "no provider of this world launches its nodes in those of another (metastatic)"
	}
	return ""
}

// demands are what a set of seeds has to reach: all transitions that launchers, requestors and
// operators can make, all steps that launchers come to, a crash at each of them, each fault, and each at each kind of call.
func demands() (all []series.Demand) {
	add := func(hours float64, names ...string) {
		for _, name := range names {
			d := series.Demand{What: name, Hours: hours, Never: never[name]}
			if strings.HasSuffix(name, " to deleted by an operator") {
				d.Never = "a provider's records are erased when nobody serves it, and each of this world is served"
			}
			d.Hours = max(hours, rare[name])
			all = append(all, d)
		}
	}
	for _, name := range slices.Concat(movesOf("node", zkmodel.NodeTransitions()), movesOf("request", zkmodel.RequestTransitions())) {
		switch {
		case strings.HasSuffix(name, actors[zkmodel.ByOperator]):
			add(manyHours, name)
		case strings.HasSuffix(name, actors[zkmodel.ByRequestor]):
			add(someHours, name)
		default:
			add(fewHours, name)
		}
	}
	for _, s := range step.All() {
		if name, why := "at "+string(s), elsewhere(s); why != "" {
			all = append(all, series.Demand{What: name, Never: why})
		} else {
			add(fewHours, name)
			add(manyHours, "crash "+name)
		}
	}
	add(fewHours, append(stage.Faults(), stage.CameTwice)...)
	add(manyHours, "crash", "expire", "stop", "reload", "reload all", "cloud vanish", "garble", "operator hold", "operator delete", "evict", "restore", "nodepool", "rebuild", "requests for an image that is just ready", "declines for want of an image")
	all = append(all, edits()...)
	for _, what := range append(endings, "declines", "takes a ready node") {
		add(manyHours, "nodepool "+what)
	}
	for _, move := range []string{"node ready to deleting", "node hold to deleting", "node building to deleting", "request pending to fulfilled"} {
		add(someHours, byNight+"move: "+move) // what becomes too old, what is held for too long, what fails
	}
	for _, kind := range cloud.Kinds() {
		if op, _, _ := strings.Cut(kind, "/"); !strings.Contains(op, "image") && op != cloud.OpUpload {
			add(manyHours, "cloud call "+kind)
		}
	}
	for _, call := range callKinds {
		add(someHours, byNight+call)
		for _, fault := range slices.Concat(toProcess, toServers, []string{"crash"}) {
			add(manyHours, met(fault, call))
		}
	}
	return all
}

// movesOf are the rows of a table that launchers of ours, requestors or an operator can make; one from any state is a row
// from each of the others that a record can be in.
func movesOf[S ~string](kind string, rows []zkmodel.Transition[S]) (list []string) {
	for _, row := range rows {
		from := []S{row.From}
		if row.From == "" {
			from = statesOf(rows, row.To)
		}
		for _, by := range []zkmodel.Actor{zkmodel.ByUs, zkmodel.ByRequestor, zkmodel.ByOperator} {
			for _, state := range from {
				if row.By&by != 0 {
					list = append(list, "move: "+kind+" "+string(state)+" to "+string(row.To)+actors[by])
				}
			}
		}
	}
	return list
}

// statesOf are those from which rows lead somewhere, but one.
func statesOf[S ~string](rows []zkmodel.Transition[S], but S) (list []S) {
	for _, row := range rows {
		if row.From != "" && row.From != but && !slices.Contains(list, row.From) {
			list = append(list, row.From)
		}
	}
	return list
}

// never is what cannot be reached in this world, and why.
var never = map[string]string{
	"move: node init to ready":               "no provider of this world has machines that exist already (static)",
	"move: node used to hold by a requestor": "a requestor gives the lock of a node back as it marks it used",
}

// rare is what comes too seldom for a few hours, and of how many it is demanded.
var rare = map[string]float64{
	"at " + string(step.Failed):  someHours,
	"at " + string(step.Evicted): someHours,
	"at " + string(step.Parted):  manyHours, // a launch and the deletion of its machine fail one after the other

	"move: node aborted to deleting":     someHours,
	"move: node building to aborted":     someHours,
	"move: node hold to deleting":        someHours,
	"move: node in-use to deleting":      someHours,
	"move: request pending to requested": someHours,
	"move: request requested to failed":  someHours,

	"move: node building to failed":   manyHours,
	"move: node deleting to deleted":  manyHours,
	"move: node failed to deleting":   manyHours,
	"move: node init to deleting":     manyHours,
	"move: request pending to failed": manyHours, // where a site has a single pool

	"move: node ready to hold by a requestor": manyHours,
}
