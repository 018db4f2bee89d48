package plan

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// dueByAge is when a ready build is too old. Each build has its own share of
// the image's jitter, so that images that were built together do not stay
// together, and all builders agree without talking.
func dueByAge(image *configs.DiskImage, b *zkmodel.Build) (time.Time, bool) {
	if image.RebuildAge <= 0 {
		return time.Time{}, false
	}
	jitter := float64(image.RebuildAge) * float64(image.RebuildJitter) / 100
	// Earlier, never later: rebuild-age is a promise.
	early := time.Duration(jitter * share(b.Image+"-"+b.ID))
	return b.StateTime.Time().Add(image.RebuildAge - early), true
}

// dueBySchedule is the first time of the image's schedule after a build began.
// However many were missed since, one build catches up with all of them.
func dueBySchedule(image *configs.DiskImage, b *zkmodel.Build) (time.Time, bool, error) {
	if image.RebuildSchedule == "" {
		return time.Time{}, false, nil
	}
	schedule, err := cron.ParseStandard(image.RebuildSchedule)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("parse rebuild-schedule %q: %w", image.RebuildSchedule, err)
	}
	began := b.Stat.Ctime
	if began.IsZero() {
		began = b.StateTime.Time()
	}
	next := schedule.Next(began.In(image.Location()))
	return next, !next.IsZero(), nil
}
