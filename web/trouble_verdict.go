package web

import (
	"fmt"
	"strings"

	"poolkeeper/zkmodel"
)

// verdictTroubles tells of a provider where not the newest upload serves, as people said
// so; nil where nobody did.
func (s *snapshot) verdictTroubles(image *zkmodel.Image, newest *zkmodel.Upload) []trouble {
	provider := newest.Provider
	verdict, pin := image.Verdict(image.Build(newest.Build).Build, provider), image.Pin(provider)
	if verdict == nil && (pin == nil || pin.Build == newest.Build) {
		return nil
	}
	now := serves(image, provider)
	var list []trouble
	if verdict != nil {
		list = append(list, trouble{
			What: fmt.Sprintf("Image %s-%s in %s was %s, %s", newest.Image, newest.Build, provider,
				strings.ReplaceAll(string(verdict.Kind), "-", " "), now),
			Why: verdict.Text(), Since: moment(verdict.Time.Time(), s.now),
		})
	}
	if pin != nil {
		list = append(list, trouble{
			What: fmt.Sprintf("Image %s in %s is pinned to build %s, %s", image.Name, provider, pin.Build, now),
			Why:  pin.Text(), Since: moment(pin.Time.Time(), s.now),
		})
	}
	if u := image.Unheeded(provider); u != nil {
		for _, c := range zkmodel.Deaf(s.pools, provider) {
			list = append(list, trouble{
				What: fmt.Sprintf("The launcher on %s goes on with image %s-%s in %s", c.Hostname, u.Image, u.Build, provider),
				Why:  "it knows no verdicts (poolkeeper image-rollback --delete takes the image out of its reach)",
			})
		}
	}
	return list
}

// canaryTroubles tells of a canary that people are to decide over, and of a provider where
// there is none, as a launcher there knows none.
func (s *snapshot) canaryTroubles(image *zkmodel.Image, provider string) []trouble {
	c := image.Canary(provider)
	if c == nil {
		return nil
	}
	var list []trouble
	if b := image.OnTrial(provider); b != nil && c.Trial.Asked != 0 {
		list = append(list, trouble{
			What: fmt.Sprintf("Image %s-%s in %s is a canary that has not served enough", image.Name, c.Trial.Build, provider),
			Why:  c.Uses(image.Build(b.Build).Build), Since: moment(c.Trial.Asked.Time(), s.now),
		})
	}
	if why := zkmodel.CanariesRefused(s.pools, provider); why != "" {
		list = append(list, trouble{What: fmt.Sprintf("Image %s in %s serves without being a canary first", image.Name, provider), Why: why})
	}
	return list
}
