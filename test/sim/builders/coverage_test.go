package builders

import (
	"fmt"
	"slices"
	"strings"

	"poolkeeper/builder/step"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/dib"
	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// How many agent-hours are enough for what a set of seeds has to reach.
const (
	least = 20 // the fixed seeds
	few   = 80
	many  = 900
)

// demands are what seeds have to reach. Nothing is listed by hand: steps, states and faults tell of themselves.
func demands() (list []series.Demand) {
	add := func(hours float64, format string, args ...any) {
		list = append(list, series.Demand{What: fmt.Sprintf(format, args...), Hours: hours})
	}
	for _, f := range slices.Concat(ofProcesses(), others(), []string{stage.CameTwice}) {
		add(few, "%s", f)
	}
	for _, s := range append(step.All(), step.Trials()...) {
		if s == step.UploadFailed { // where a cloud is in trouble for long
			add(few, "at %s", s)
		} else {
			add(least, "at %s", s)
		}
		add(many, "crash at %s", s)
	}
	for _, s := range []zkmodel.BuildState{zkmodel.BuildBuilding, zkmodel.BuildReady, zkmodel.BuildFailed} {
		add(many, "garbled build %s", s)
	}
	for _, s := range []zkmodel.UploadState{zkmodel.UploadUploading, zkmodel.UploadReady, zkmodel.UploadFailed} {
		add(many, "garbled upload %s", s)
	}
	for _, what := range kinds(append(step.All(), step.Trials()...)) {
		for _, f := range append(ofProcesses(), "garble") {
			add(many, "%s while: %s", f, what)
		}
	}
	for _, o := range append(dib.Outcomes(), dib.Works) {
		add(many, "build that %s", o)
	}
	for _, kind := range cloud.Kinds() {
		add(many, "met %s", kind)
	}
	list = append(list, moves("build", zkmodel.BuildTransitions(), zkmodel.BuildBuilding, zkmodel.BuildReady, zkmodel.BuildFailed)...)
	list = append(list, moves("upload", zkmodel.UploadTransitions(), zkmodel.UploadUploading, zkmodel.UploadReady, zkmodel.UploadFailed)...)
	not := unreached()
	for i := range list {
		list[i].Never = never(list[i].What, not)
	}
	return list
}

// kinds are the kinds of things that a builder does at some steps.
func kinds(steps []step.Step) (list []string) {
	for _, s := range steps {
		if !slices.Contains(list, s.Of()) {
			list = append(list, s.Of())
		}
	}
	return list
}

// moves are the rows of a table that we or an operator make. states are those that a row from any is for.
func moves[S ~string](kind string, table []zkmodel.Transition[S], states ...S) (list []series.Demand) {
	for _, row := range table {
		from := []S{row.From}
		if row.From == "" {
			from = states
		}
		for by, name := range map[zkmodel.Actor]string{zkmodel.ByUs: "us", zkmodel.ByOperator: "an operator"} {
			for _, s := range from {
				if row.By&by != 0 {
					list = append(list, series.Demand{What: fmt.Sprintf("moved %s %s → %s by %s", kind, s, row.To, name), Hours: many})
				}
			}
		}
	}
	return list
}

// noLauncher is why nothing is tried here.
const noLauncher = "no launcher is in this world"

// unreached is what nothing can reach, and why; by its beginning.
func unreached() map[string]string {
	list := map[string]string{"moved upload uploading → deleting by us": "only an upload that is tried goes so, and " + noLauncher}
	for _, op := range []string{cloud.OpCreate, cloud.OpDeleteNode, cloud.OpLimits, cloud.OpListNodes, cloud.OpWait} {
		list["met "+op+"/"] = noLauncher
	}
	for _, s := range step.Trials() {
		list["at "+string(s)], list["crash at "+string(s)] = noLauncher, noLauncher
	}
	for _, f := range append(ofProcesses(), "garble") {
		list[f+" while: "+step.TrialBegun.Of()] = noLauncher
	}
	return list
}

func never(what string, unreached map[string]string) string {
	for begin, why := range unreached {
		if strings.HasPrefix(what, begin) {
			return why
		}
	}
	return ""
}
