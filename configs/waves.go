package configs

import (
	"regexp"
	"slices"
)

// Wave is a wave of builds that begins by a schedule.
type Wave struct {
	Name        string
	Schedule    string   // five cron fields or @daily …
	Timezone    string   // of Schedule; "UTC" by default
	All         bool     // all images
	Match       []string // patterns of images' names, as a shell has them
	Reason      string
	Order       string // freshness or priority
	Priority    string // high, normal or low
	MaxParallel int    // builds that are asked for at once; 0 is no limit
	Until       string // built, uploaded or validated
	MaxFailures string // a number of images, or a share as 20%
}

// maxFailures is what max-failures may look like.
var maxFailures = regexp.MustCompile(`^(\d{1,5}|(\d|[1-9]\d|100)%)$`)

// waveName is what the name of a wave may look like: the ids of its waves begin with it.
var waveName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$`)

// wave decodes one of the waves that begin by a schedule.
func (l *loader) wave(v value) Wave {
	v.item = nil // without its images or limits it would be another wave
	w := defaultWave()
	keys := w.keys("wave")
	keys["schedule"], keys["timezone"] = schedule(&w.Schedule), timezone(&w.Timezone)
	have := v.decode("wave", keys)
	v.require(have, "name", "schedule")
	l.checkWave(v, have, w)
	return w
}

func defaultWave() Wave {
	return Wave{Timezone: "UTC", Order: "freshness", Priority: "normal", MaxParallel: 10, Until: "uploaded", MaxFailures: "20%"}
}

// keys are those that say which images a wave has, and how it goes; kind is what begins it.
func (w *Wave) keys(kind string) fields {
	return fields{
		"name":         checkedName(kind, &w.Name),
		"all":          flag(&w.All),
		"match":        textOrTexts(&w.Match),
		"reason":       text(&w.Reason),
		"order":        oneOf(&w.Order, "freshness", "priority"),
		"priority":     oneOf(&w.Priority, "high", "normal", "low"),
		"max-parallel": number(&w.MaxParallel, 0, unlimited),
		"until":        oneOf(&w.Until, "built", "uploaded", "validated"),
		"max-failures": text(&w.MaxFailures),
	}
}

// checkWave refuses what is no wave.
func (l *loader) checkWave(v value, have present, w Wave) {
	if have["name"] && !waveName.MatchString(w.Name) {
		v.fail("%q cannot be the name of a wave: expected letters, digits, dots, dashes and underscores, at most 61", w.Name)
	}
	if !maxFailures.MatchString(w.MaxFailures) {
		v.fail("max-failures %q is neither a number of images nor a share such as 20%%", w.MaxFailures)
	}
	if w.All == (len(w.Match) > 0) {
		v.fail("expected all: true, or match with patterns")
	}
	v.later(func() {
		l.checkMatch(v, w)
		if w.Until == "validated" {
			l.checkValidated(v, w)
		}
	})
}

// checkMatch tells of patterns that name no image.
func (l *loader) checkMatch(v value, w Wave) {
	for _, pattern := range w.Match {
		if checkPattern(v, pattern) && !slices.ContainsFunc(l.cfg.DiskImages, func(i DiskImage) bool { return matches(pattern, i.Name) }) {
			v.fail("no image is like %q", pattern)
		}
	}
}

// checkValidated tells of images of a wave that are never validated.
func (l *loader) checkValidated(v value, w Wave) {
	for i := range l.cfg.DiskImages {
		image := &l.cfg.DiskImages[i]
		wanted := w.All || slices.ContainsFunc(w.Match, func(pattern string) bool { return matches(pattern, image.Name) })
		if wanted && image.Validate == nil && len(l.cfg.ImageFormats(image.Name)) > 0 {
			v.fail("until: validated, but image %s has no validate: it is never validated; use uploaded", image.Name)
		}
	}
}
