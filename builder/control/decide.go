package control

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// errBuildDeleted is the cause of an upload that ends because its build is
// being deleted.
var errBuildDeleted = errors.New("the build is being deleted")

// membersChanged reports whether a builder came or went since it was asked last, or
// works otherwise. That one cannot use a provider is no reason to try anything again.
func (l *loop) membersChanged() bool {
	var now []string
	for _, c := range l.Mirror.Components(zkmodel.KindBuilder) {
		now = append(now, c.Name+" "+c.State+" "+strconv.FormatBool(c.Reason != "")) // the reason counts bytes
	}
	slices.Sort(now)
	changed := !slices.Equal(now, l.members)
	l.members = now
	return changed
}

// heedMembers looks at all images again when builders have changed: who is gone has left work
// behind, and locks that others waited for.
func (l *loop) heedMembers() {
	if l.membersChanged() {
		clear(l.retries)
		l.mark(l.all()...)
	}
}

func (l *loop) mark(images ...string) {
	for _, image := range images {
		if image == zkmodel.Folder {
			l.mark(l.all()...)
			continue
		}
		l.dirty[image] = true
	}
}

// decide makes new plans for the images that have changed.
func (l *loop) decide(ctx context.Context) {
	if len(l.dirty) == 0 {
		return
	}
	defer l.Deciding(ctx)()
	if l.Config().Validates() {
		l.Mirror.FollowValidations()
	}
	var seen []disk.Name
	for image := range l.dirty {
		in := l.Snapshot(image)
		seen = builds(seen, in.Image)
		l.endUploads(in.Image)
		decided := plan.Decide(in)
		ready, next := l.retries.ready(decided.Actions, in.Now)
		l.queue.set(image, ready)
		l.trials.Look(ctx, image, decided.Trials)
		delete(l.alarms, image)
		for _, t := range []time.Time{next, decided.Next} {
			if first, set := l.alarms[image]; !t.IsZero() && (!set || t.Before(first)) {
				l.alarms[image] = t
			}
		}
		l.Metrics.Snapshot(in)
		l.Metrics.Due(image, decided.Due)
		l.tellSpace(image, decided.NoSpace)
	}
	clear(l.dirty)
	l.note(seen)
}

// builds adds those of an image, of which the youngest need not have the highest number: after a restore numbers
// may come in another order.
func builds(list []disk.Name, i *zkmodel.Image) []disk.Name {
	for _, b := range i.Builds {
		list = append(list, disk.Name{Image: b.Image, ID: b.ID})
	}
	return list
}

// note notes the numbers of builds, so that none comes again.
func (l *loop) note(seen []disk.Name) {
	if err := l.images.Seen(seen...); err != nil {
		l.Log.Debug("Cannot note a number; it is tried again", "error", err)
	}
}

// errJudged is the cause of an upload that ends because its build is not to serve there.
var errJudged = errors.New("the build was rolled back or rejected there")

// endUploads ends those of builds that are being deleted, as what they send would be
// deleted next, and of builds that were rolled back or rejected where they go.
func (l *loop) endUploads(image *zkmodel.Image) {
	for _, t := range l.queue.uploadsOf(image.Name) {
		for _, b := range image.Builds {
			if b.ID == t.Build && b.Broken == nil && b.State == zkmodel.BuildDeleting {
				t.cancel(errBuildDeleted)
			}
			if b.ID == t.Build && image.Verdict(b.Build, t.Provider) != nil {
				t.cancel(errJudged)
			}
		}
	}
}

// tellSpace warns, once, of a build that the disk has no room for: it is not
// begun, so no record tells of it.
func (l *loop) tellSpace(image, noSpace string) {
	if noSpace != "" && !l.short[image] {
		l.Log.Warn("The disk is full, the build waits", "image", image,
			"folder", l.Config().ImagesDir, "space", noSpace)
	}
	l.short[image] = noSpace != ""
}

// untilAlarm is the time until the first alarm. The clock may be a test's, which
// stands still: then it is asked again before long.
func (l *loop) untilAlarm() time.Duration {
	wait := l.Resync
	now := l.clock.now()
	for _, t := range l.alarms {
		wait = min(wait, t.Sub(now))
	}
	if !l.manned.IsZero() {
		wait = min(wait, l.manned.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// ring marks the images whose time has come.
func (l *loop) ring() {
	now := l.clock.now()
	for image, t := range l.alarms {
		if !now.Before(t) {
			l.mark(image)
			delete(l.alarms, image)
		}
	}
}
