package control

import (
	"slices"

	"poolkeeper/zkmodel"
)

// onTrial is what is known of the trials of an image's uploads, and of the providers
// where no launcher that is registered tries any.
func (c *Control) onTrial(image *zkmodel.Image) (trials []*zkmodel.Validation, untriable map[string]bool) {
	for _, b := range image.Builds {
		for _, u := range b.Uploads {
			if !u.OnTrial() {
				continue
			}
			c.Mirror.FollowValidations()
			if untriable == nil {
				untriable = map[string]bool{}
			}
			untriable[u.Provider] = !c.tries(u.Provider)
		}
	}
	all, err := c.Mirror.Validations("")
	if err != nil {
		return nil, untriable
	}
	return slices.DeleteFunc(all, func(v *zkmodel.Validation) bool { return v.Image != image.Name }), untriable
}

// tries reports whether a launcher of a provider is registered that tries uploads.
func (c *Control) tries(provider string) bool {
	return slices.ContainsFunc(c.Mirror.Components(zkmodel.KindPool), func(p *zkmodel.Component) bool {
		return p.Broken == nil && p.ProviderName == provider && slices.Contains(p.Knows, zkmodel.KnowsValidation)
	})
}

// tellTrials takes the figures of the uploads that are tried.
func (l *loop) tellTrials() {
	if all, err := l.Mirror.Validations(""); err == nil {
		l.Metrics.Trials(all, l.clock.now())
	}
}

// onTrial are the images of which an upload is tried, or was.
func (l *loop) onTrial() []string {
	images := l.trials.Images()
	all, _ := l.Mirror.Validations("")
	for _, v := range all {
		if v.Broken == nil {
			images = append(images, v.Image)
		}
	}
	return images
}
