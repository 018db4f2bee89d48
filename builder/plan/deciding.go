package plan

import "strings"

// MarkDeciding sets Decides of the verdict that decides each subject, which is the last one that speaks for or
// against it. It skips subjects that are one build, upload or file.
func MarkDeciding(verdicts []Verdict) {
	last := map[string]int{}
	for i, v := range verdicts {
		if v.Speaks == "" || v.ofRecord() {
			continue
		}
		key := v.Subject
		if key == "launchers" { // each of these verdicts is about another launcher or provider
			key += v.Detail
		}
		last[key] = i
	}
	for _, i := range last {
		verdicts[i].Decides = true
	}
}

// ofRecord reports whether the subject is one build, upload or file of an image.
func (v Verdict) ofRecord() bool {
	for _, kind := range []string{"build 0", "upload 0", "files of ", "file "} {
		if strings.HasPrefix(v.Subject, kind) {
			return true
		}
	}
	return false
}

// outcomes are the words for rules that speak against a build or an upload; "waits" for all others.
var outcomes = map[string]string{
	"due": "up to date", "done": "done", "pause": "paused", "pause flag": "paused",
	"build lock": "in progress", "under way": "in progress", "trial": "on trial",
	"configured": "not built here", "formats": "not built here", "selection": "not built here", "architecture": "not built here",
}

// Outcome says in one or a few words what a deciding verdict means for its subject.
func (v Verdict) Outcome() string {
	acts := v.Subject == subjectBuild || v.Subject == "upload" || strings.HasPrefix(v.Subject, "upload to ")
	switch {
	case !acts:
		return map[string]string{For: "yes", Against: "no"}[v.Speaks]
	case v.Speaks == For:
		return "now"
	case outcomes[v.Rule] != "":
		return outcomes[v.Rule]
	}
	return "waits"
}
