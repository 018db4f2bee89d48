package control

import (
	"slices"

	"poolkeeper/zkmodel"
)

// onTrial is what is known of the trials of an image's uploads.
func (c *Control) onTrial(image *zkmodel.Image) (trials []*zkmodel.Validation, untriable map[string]bool) {
	if untriable = Untriable(image, nil); untriable != nil {
		c.Mirror.FollowValidations()
		untriable = Untriable(image, c.Mirror.Components(zkmodel.KindPool))
	}
	all, err := c.Mirror.Validations("")
	if err != nil {
		return nil, untriable
	}
	return slices.DeleteFunc(all, func(v *zkmodel.Validation) bool { return v.Image != image.Name }), untriable
}

// Untriable says of each provider where an upload of an image is tried whether none of
// the launchers' pools there tries any; nil when no upload is tried.
func Untriable(image *zkmodel.Image, pools []*zkmodel.Component) (is map[string]bool) {
	for _, b := range image.Builds {
		for _, u := range b.Uploads {
			if !u.OnTrial() {
				continue
			}
			if is == nil {
				is = map[string]bool{}
			}
			is[u.Provider] = !slices.ContainsFunc(pools, func(p *zkmodel.Component) bool {
				return p.Broken == nil && p.ProviderName == u.Provider && slices.Contains(p.Knows, zkmodel.KnowsValidation)
			})
		}
	}
	return is
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
