package attention

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
func (s *Site) trialTroubles(image *zkmodel.Image) []Item {
	var list []Item
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
		list = append(list, Item{
			What: fmt.Sprintf("Image %s-%s in %s has failed its trial, %s", image.Name, v.Build, v.Provider, serves(image, v.Provider)),
			Why:  v.Reason, Since: v.Time.Time(),
			Kind: TrialFailed, Image: image.Name, Build: v.Build, Provider: v.Provider,
		})
	}
	return list
}

// waitTroubles tells of an upload under trial that waits.
func (s *Site) waitTroubles(image *zkmodel.Image, u *zkmodel.Upload) []Item {
	what := fmt.Sprintf("Image %s-%s in %s is not tried, ", u.Image, u.Build, u.Provider)
	v := zkmodel.ValidationOf(s.Trials, u)
	if v != nil && !v.Waits() {
		return nil // it is over; the canary is waited for, perhaps
	}
	if !s.NoComponents && !zkmodel.TriesUploads(s.Pools, u.Provider) {
		return []Item{{
			What: what + serves(image, u.Provider), Why: zkmodel.NobodyTries(u.Provider), Since: u.StateTime.Time(),
			Kind: Untried, Image: u.Image, Build: u.Build, Provider: u.Provider,
		}}
	}
	if v == nil {
		return nil
	}
	if since := v.Untried(); !since.IsZero() && s.Now.Sub(since) > slowTrial {
		return []Item{{
			What: what + serves(image, u.Provider), Why: v.Text(), Since: since,
			Kind: Untried, Image: u.Image, Build: u.Build, Provider: u.Provider,
		}}
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
