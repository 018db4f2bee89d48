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
func dueByAge(image *configs.DiskImage, b *zkmodel.Build, now time.Time) (time.Time, bool) {
	if image.RebuildAge <= 0 {
		return time.Time{}, false
	}
	jitter := float64(image.RebuildAge) * float64(image.RebuildJitter) / 100
	// Earlier, never later: rebuild-age is a promise.
	early := time.Duration(jitter * share(b.Image+"-"+b.ID))
	return since(b.StateTime, zkmodel.NoLater(b.StateTime, b.Stat), now).Add(image.RebuildAge - early), true
}

// dueBySchedule is the first time of the image's schedule after a build began,
// and the image's share of rebuild-jitter later. However many were missed since,
// one build catches up with all of them.
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
	if next.IsZero() {
		return time.Time{}, false, nil
	}
	return next.Add(delay(image, next, schedule.Next(next))), true, nil
}

// delay is how much later than its schedule an image is due, so that many images
// with one schedule do not all begin at once: its own share of rebuild-jitter,
// a part of the time until the schedule's next. It stays within the window that
// is open at the time.
func delay(image *configs.DiskImage, due, next time.Time) time.Duration {
	if image.RebuildJitter <= 0 || next.IsZero() {
		return 0
	}
	most := time.Duration(float64(next.Sub(due)) * float64(image.RebuildJitter) / 100)
	if end := image.WindowEnd(due); !end.IsZero() {
		most = min(most, end.Sub(due))
	}
	return time.Duration(float64(most) * share("schedule-"+image.Name))
}
