package builder

import (
	"fmt"
	"slices"
	"strings"

	"poolkeeper/builder/control"
	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// workers says how the workers stand that the builders have: those of this host, without
// which it does nothing, and for a build, which any builder may make, those of the others.
func workers(works []zkmodel.BuilderWork, host string, cfg *configs.Config, actions []plan.Action) []plan.Verdict {
	var list []plan.Verdict
	here := slices.IndexFunc(works, func(w zkmodel.BuilderWork) bool { return w.Host == host })
	for _, a := range actions {
		if a.Kind != plan.Build && a.Kind != plan.Upload {
			continue
		}
		subject := string(a.Kind)
		if a.Kind == plan.Upload {
			subject += " to " + a.Provider
		}
		if here < 0 {
			v := plan.Verdict{Subject: subject, Rule: "builder", Speaks: plan.Against, Detail: "no builder runs on this host"}
			if a.Kind == plan.Build && len(works) > 0 {
				v.Speaks, v.Detail = "", v.Detail+"; another one can build it"
			}
			list = append(list, v)
		} else {
			v := plan.Verdict{Subject: subject, Rule: "--" + string(a.Kind) + "-workers", Detail: busy(works[here], a.Kind)}
			free, reserved := control.Room(works[here], cfg, a)
			if !free {
				v.Speaks = plan.Against
			}
			if reserved {
				v.Detail += "; those left are for other providers"
			}
			list = append(list, v)
		}
		for i, w := range works {
			if i != here && a.Kind == plan.Build {
				list = append(list, plan.Verdict{Subject: subject, Rule: "workers of " + w.Host, Detail: busy(w, a.Kind)})
			}
		}
	}
	return list
}

// busy says how many workers of a kind a builder has, and what they are at.
func busy(w zkmodel.BuilderWork, kind plan.Kind) string {
	at, most := w.Builds, w.BuildWorkers
	if kind == plan.Upload {
		at, most = nil, w.UploadWorkers
		for _, u := range w.Uploads {
			at = append(at, u.Image+"-"+u.Build+" to "+u.Provider)
		}
	}
	text := fmt.Sprintf("%d of %d are busy", len(at), most)
	if len(at) > 0 {
		text += ": " + strings.Join(at, ", ")
	}
	return text
}
