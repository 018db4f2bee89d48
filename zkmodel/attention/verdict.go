package attention

import (
	"fmt"
	"strings"

	"poolkeeper/zkmodel"
)

// verdictTroubles tells of a provider where not the newest upload serves, as people said
// so; nil where nobody did.
func (s *Site) verdictTroubles(image *zkmodel.Image, newest *zkmodel.Upload) []Item {
	provider := newest.Provider
	verdict, pin := image.Verdict(image.Build(newest.Build).Build, provider), image.Pin(provider)
	if verdict == nil && (pin == nil || pin.Build == newest.Build) {
		return nil
	}
	now := serves(image, provider)
	var list []Item
	if verdict != nil {
		list = append(list, Item{
			What: fmt.Sprintf("Image %s-%s in %s was %s, %s", newest.Image, newest.Build, provider,
				strings.ReplaceAll(string(verdict.Kind), "-", " "), now),
			Why: verdict.Text(), Since: verdict.Time.Time(),
			Kind: Verdict, Image: newest.Image, Build: newest.Build, Provider: provider,
		})
	}
	if pin != nil {
		list = append(list, Item{
			What: fmt.Sprintf("Image %s in %s is pinned to build %s, %s", image.Name, provider, pin.Build, now),
			Why:  pin.Text(), Since: pin.Time.Time(),
			Kind: Pinned, Image: image.Name, Build: pin.Build, Provider: provider,
		})
	}
	if u := image.Unheeded(provider); u != nil {
		for _, c := range zkmodel.Deaf(s.Pools, provider) {
			list = append(list, Item{
				What: fmt.Sprintf("The launcher on %s goes on with image %s-%s in %s", c.Hostname, u.Image, u.Build, provider),
				Why:  "it knows no verdicts (poolkeeper image-rollback --delete takes the image out of its reach)",
				Kind: Deaf, Image: u.Image, Build: u.Build, Provider: provider, Name: c.Hostname,
			})
		}
	}
	return list
}

// staleRulings reports the verdicts and pins of an image that are not in force.
func staleRulings(image *zkmodel.Image) (list []Item) {
	for _, one := range image.Stale() {
		name, said, undo := image.Name+"-"+one.Build, "verdict on", "To remove it: poolkeeper image-promote "+image.Name+"-"+one.Build
		if one.Pin {
			said, undo = "pin of", "To remove it: poolkeeper image-rollback "+image.Name+" --release"
		}
		list = append(list, Item{
			What: fmt.Sprintf("The %s image %s in %s is not in force", said, name, one.Provider),
			Why: one.Text + "; the record of the build was created again since, for example by an import. " + undo +
				" --provider " + one.Provider,
			Since: one.Time.Time(), Kind: VerdictStale, Image: image.Name, Build: one.Build, Provider: one.Provider,
		})
	}
	return list
}

// canaryTroubles tells of a canary that people are to decide over, and of a provider where
// there is none, as a launcher there knows none.
func (s *Site) canaryTroubles(image *zkmodel.Image, provider string) []Item {
	c := image.Canary(provider)
	if c == nil {
		return nil
	}
	var list []Item
	if b := image.OnTrial(provider); b != nil && c.Trial.Asked != 0 {
		list = append(list, Item{
			What: fmt.Sprintf("Image %s-%s in %s is a canary that has not served enough", image.Name, c.Trial.Build, provider),
			Why:  c.Uses(image.Build(b.Build).Build), Since: c.Trial.Asked.Time(),
			Kind: CanaryAsks, Image: image.Name, Build: c.Trial.Build, Provider: provider,
		})
	}
	if why := zkmodel.CanariesRefused(s.Pools, provider); why != "" {
		list = append(list, Item{
			Kind: CanaryRefused, Image: image.Name, Provider: provider,
			What: fmt.Sprintf("Image %s in %s serves without being a canary first", image.Name, provider), Why: why,
		})
	}
	return list
}
