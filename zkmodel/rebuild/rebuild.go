// Package rebuild says when an image is to be built anew, by its age and by its schedule: pure
// functions of the configuration and the record of the build that is there.
package rebuild

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// DueByAge is when a ready build is too old. Each build has its own share of
// the image's jitter, so that images that were built together do not stay
// together, and all builders agree without talking.
func DueByAge(image *configs.DiskImage, b *zkmodel.Build, now time.Time) (time.Time, bool) {
	if image.RebuildAge <= 0 {
		return time.Time{}, false
	}
	jitter := float64(image.RebuildAge) * float64(image.RebuildJitter) / 100
	// Earlier, never later: rebuild-age is a promise.
	early := time.Duration(jitter * Share(b.Image+"-"+b.ID))
	return Since(b.StateTime, zkmodel.NoLater(b.StateTime, b.Stat), now).Add(image.RebuildAge - early), true
}

// DueBySchedule is the first time of the image's schedule after a build began,
// and the image's share of rebuild-jitter later. However many were missed since,
// one build catches up with all of them.
func DueBySchedule(image *configs.DiskImage, b *zkmodel.Build) (time.Time, bool, error) {
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
// with one schedule do not all begin at once: a share of rebuild-jitter, a part of
// the time until the schedule's next. The share is a hash of the image and the due time, so
// all builders agree, and images take another order each time. The delay stays within the
// window that is open at the time.
func delay(image *configs.DiskImage, due, next time.Time) time.Duration {
	if image.RebuildJitter <= 0 || next.IsZero() {
		return 0
	}
	most := time.Duration(float64(next.Sub(due)) * float64(image.RebuildJitter) / 100)
	if end := image.WindowEnd(due); !end.IsZero() {
		most = min(most, end.Sub(due))
	}
	return time.Duration(float64(most) * Share("schedule-"+image.Name+"-"+strconv.FormatInt(due.Unix(), 10)))
}

// clocksDiffer is by how much the clocks of two hosts may differ.
const clocksDiffer = time.Minute

// Since is when a record got its state. A time of the future is not believed, and none is not taken for 1970: it is
// noLater then, see zkmodel.NoLater.
func Since(state zkmodel.Epoch, noLater time.Time, now time.Time) time.Time {
	if told := state.Time(); !told.After(now.Add(clocksDiffer)) && !(state.Silent() && noLater.Year() >= 2000) {
		return told
	}
	return noLater
}

// Share is a number in [0, 1) that depends on the seed alone.
func Share(seed string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // never fails
	// FNV mixes its last bytes badly into the high bits, where we look.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}
