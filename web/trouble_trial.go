package web

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// slowTrial is for how long an upload is not tried until that needs attention.
const slowTrial = time.Hour

// trialTroubles tells of uploads that are not tried for long, or that nobody tries, and of
// builds that have failed their trial and that no newer one has followed.
func (s *snapshot) trialTroubles(image *zkmodel.Image) []trouble {
	var list []trouble
	for _, b := range image.Builds {
		for _, u := range b.Uploads {
			if u.OnTrial() {
				list = append(list, s.waitTroubles(image, u)...)
			}
		}
	}
	if image.Verdicts == nil {
		return list
	}
	for n := range image.Verdicts.List {
		v := &image.Verdicts.List[n]
		b := image.Build(v.Build)
		if v.Kind != zkmodel.Rejected || v.By != zkmodel.ByValidation || b == nil || b.Broken != nil || image.Verdict(b.Build, v.Provider) != v {
			continue
		}
		if superseded(image, b, v.Provider) {
			continue
		}
		list = append(list, trouble{
			What: fmt.Sprintf("Image %s-%s in %s has failed its trial, %s", image.Name, v.Build, v.Provider, serves(image, v.Provider)),
			Why:  v.Reason, Since: moment(v.Time.Time(), s.now),
		})
	}
	return list
}

// waitTroubles tells of an upload under trial that waits.
func (s *snapshot) waitTroubles(image *zkmodel.Image, u *zkmodel.Upload) []trouble {
	what := fmt.Sprintf("Image %s-%s in %s is not tried, ", u.Image, u.Build, u.Provider)
	v := zkmodel.ValidationOf(s.trials, u)
	if v != nil && !v.Waits() {
		return nil // it is over; the canary is waited for, perhaps
	}
	if s.tree.Components != nil && !zkmodel.TriesUploads(s.pools, u.Provider) {
		return []trouble{{
			What: what + serves(image, u.Provider), Why: zkmodel.NobodyTries(u.Provider), Since: moment(u.StateTime.Time(), s.now),
		}}
	}
	if v == nil {
		return nil
	}
	if since := v.Untried(); !since.IsZero() && s.now.Sub(since) > slowTrial {
		return []trouble{{What: what + serves(image, u.Provider), Why: v.Text(), Since: moment(since, s.now)}}
	}
	return nil
}

// serves says what serves in a provider.
func serves(image *zkmodel.Image, provider string) string {
	if u := image.Serving(provider, zkmodel.Suspect); u != nil {
		return "build " + u.Build + " serves"
	}
	return "no build of it serves"
}

// superseded reports whether a provider has, or had sent to it, anything newer than a build,
// or that build still for all to see.
func superseded(image *zkmodel.Image, than *zkmodel.BuildTree, provider string) bool {
	newer := false
	for _, b := range image.Builds {
		newer = newer || b == than
		if newer && slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool {
			return u.Provider == provider && u.Broken == nil && u.State != zkmodel.UploadDeleting
		}) {
			return true
		}
	}
	return false
}
