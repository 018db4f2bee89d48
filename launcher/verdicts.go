package launcher

import (
	"slices"

	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// idleJudged notes in a snapshot the idle nodes of builds that are not to serve any
// more: nobody is given one, and the reaper takes them away.
func (s *session) idleJudged(snap *schedule.Snapshot) {
	snap.Judged = bootable.Judged(s.images, snap.Nodes)
	for id := range snap.Judged {
		snap.Evicted[id] = true
	}
}

// judgedNow says it of one node as the tree is now, whose lock is ours.
func (s *session) judgedNow(n *zkmodel.Node) string {
	key, err := zkmodel.ParseUploadPath(n.ImageID)
	if err != nil || !s.mirror.Judged(key.Image) {
		return ""
	}
	if v := zkmodel.VerdictOn([]*zkmodel.Image{s.mirror.Image(key.Image)}, n.ImageID); v != nil {
		return v.Text()
	}
	return ""
}

// followTrials has the uploads that are tried before they serve followed, once one is, or
// may be by our own configuration: elsewhere not one read is made for them.
func (s *session) followTrials() {
	if s.mirror.FollowsValidations() {
		return
	}
	onTrial := slices.ContainsFunc(s.images, func(i *zkmodel.Image) bool {
		return slices.ContainsFunc(i.Builds, func(b *zkmodel.BuildTree) bool {
			return slices.ContainsFunc(b.Uploads, (*zkmodel.Upload).OnTrial)
		})
	})
	if onTrial || s.cfg.Validates() {
		s.mirror.FollowValidations()
	}
}

// place is an image in one of our providers.
type place struct{ image, provider string }

// tellVerdicts logs what people have said of builds in our providers, once, and what
// nodes boot from since. It costs nothing where nothing was said.
func (s *session) tellVerdicts() {
	for _, image := range s.images {
		for _, p := range s.cfg.ProvidersOf(image.Name) {
			at := place{image.Name, p.Name}
			text := saidOf(image, p.Name)
			if text == s.toldVerdicts[at] {
				continue
			}
			s.toldVerdicts[at] = text
			s.tellVerdict(image, p.Name, text)
		}
	}
}

// saidOf is what was said last of builds in a provider; "" when that is nothing.
func saidOf(image *zkmodel.Image, provider string) string {
	if pin := image.Pin(provider); pin != nil {
		return "build " + pin.Build + " is " + pin.Text()
	}
	text := ""
	if image.Verdicts != nil {
		for _, v := range image.Verdicts.List { // the last said is the last
			if v.Provider == provider && !image.Replaced(v.Build, v.BuildCzxid) {
				text = "build " + v.Build + " was " + v.Text()
			}
		}
	}
	return text
}

// tellVerdict logs what an image's nodes boot from now.
func (s *session) tellVerdict(image *zkmodel.Image, provider, text string) {
	log := s.log.With("image", image.Name, "provider", provider)
	serves := image.Serving(provider, zkmodel.Suspect)
	switch {
	case text == "":
		log.Info("Nothing is said of the image's builds any more; the newest serves")
	case serves == nil:
		log.Warn("No build of the image may serve in the provider", "why", text)
	case image.Pin(provider) != nil && image.Pin(provider).Build != serves.Build:
		log.Warn("The pinned build is not in the provider; another one serves", "build", serves.Build, "why", text)
	default:
		log.Info("Nodes boot from the build that is left to serve", "build", serves.Build, "why", text)
	}
}
