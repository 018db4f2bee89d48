package control

import (
	"maps"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs"
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
			is[u.Provider] = !zkmodel.TriesUploads(pools, u.Provider)
		}
	}
	return is
}

// NoCanary says of each provider of an image that has canaries whether no build is going to be
// one there; nil where it has none. components lists those of a kind.
func NoCanary(cfg *configs.Config, image string, components func(kind string) []*zkmodel.Component) map[string]bool {
	if cfg.CanaryOf(image) == nil {
		return nil
	}
	is, pools := map[string]bool{}, components(zkmodel.KindPool)
	for _, p := range cfg.ProvidersOf(image) {
		is[p.Name] = zkmodel.CanariesRefused(pools, p.Name) != ""
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

// startTime is how long a provider may be without a launcher that tries uploads until that
// is told: one that is started anew is no news.
const startTime = time.Minute

// unmanned is where uploads wait that no launcher tries. All of it belongs to the loop.
type unmanned struct {
	since map[string]time.Time // by provider
	told  map[string]bool
}

// look takes the providers where uploads wait that no launcher tries. It returns those of
// which that is to be told now, those of which it was told and is over, and when to look
// again although nothing changes.
func (u *unmanned) look(providers []string, now time.Time) (told, over []string, next time.Time) {
	for _, p := range providers {
		since, known := u.since[p]
		if !known {
			since, u.since[p] = now, now
		}
		switch due := since.Add(startTime); {
		case u.told[p]:
		case !due.After(now):
			u.told[p] = true
			told = append(told, p)
		case next.IsZero() || due.Before(next):
			next = due
		}
	}
	for _, p := range slices.Sorted(maps.Keys(u.since)) {
		if !slices.Contains(providers, p) {
			if u.told[p] {
				over = append(over, p)
			}
			delete(u.since, p)
			delete(u.told, p)
		}
	}
	return told, over, next
}

// tellUnmanned says once of each provider of this builder that uploads wait there and no
// launcher tries any, and once when that is over.
func (l *loop) tellUnmanned() {
	l.manned = time.Time{}
	all, err := l.Mirror.Validations("")
	if err != nil {
		return // then nobody knows
	}
	pools, example := l.Mirror.Components(zkmodel.KindPool), map[string]string{}
	for _, v := range all {
		if _, ours := l.Config().Provider(v.Provider); ours && v.Waits() && !zkmodel.TriesUploads(pools, v.Provider) {
			example[v.Provider] = v.Key().Path()
		}
	}
	told, over, next := l.nobody.look(slices.Sorted(maps.Keys(example)), l.clock.now())
	for _, p := range told {
		l.Log.Warn("Uploads wait that no launcher of their provider tries; those before them serve", "provider", p, "upload", example[p],
			"why", zkmodel.NobodyTries(p))
	}
	for _, p := range over {
		l.Log.Info("No upload waits for a launcher that tries uploads any more", "provider", p)
	}
	l.manned = next
}

// canariesMoved are the images with an upload that waits, or is tried, of which another
// build is the canary now than when it was asked last, or none, or for which launchers have come
// or gone that know none. That nodes of a canary are counted changes nothing for these.
func (l *loop) canariesMoved() (images []string) {
	now := map[[2]string]string{}
	pools := sync.OnceValue(func() []*zkmodel.Component { return l.Mirror.Components(zkmodel.KindPool) })
	for _, name := range l.trials.Images() {
		for _, c := range l.Mirror.Canaries(name) {
			at, is := [2]string{c.Provider, name}, c.Promoted.Build+"/"
			if c.Trial != nil {
				is += c.Trial.Build
			}
			if zkmodel.CanariesRefused(pools(), c.Provider) != "" {
				is += "/refused"
			}
			if now[at] = is; is != l.canary[at] && !slices.Contains(images, name) {
				images = append(images, name)
			}
		}
		for at := range l.canary {
			if _, there := now[at]; !there && at[1] == name && !slices.Contains(images, name) {
				images = append(images, name)
			}
		}
	}
	l.canary = now
	return images
}
