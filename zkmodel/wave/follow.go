package wave

import (
	"cmp"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
)

// settle is how long what seems to be lost is looked at before it is judged: records may
// be seen later than flags and locks that were changed after them.
const settle = 2 * time.Second

// follow judges a job whose flag was made with it, and of which no build is ready. The
// builders try as often as they do without a wave; the job tells what has come of it.
func (d *decision) follow() {
	p, flag := &d.step.Progress, d.Image.BuildRequested
	if d.unasked() {
		return
	}
	since := p.NotBefore
	p.NotBefore = nil
	if p.State != Processing {
		now := d.Now
		p.Asked, p.Estimate = &now, EstimateOf(d.Image)
		d.move(Processing, FlagStays)
	}
	switch {
	case d.Image.Unread != nil:
		d.step.Note = fmt.Sprintf("part of the image cannot be read: %v", d.Image.Unread)
	case d.running != nil:
	case d.bad != nil && (d.bad.State == zkmodel.BuildFailed || d.settled(since)):
		p.Tries++
		p.After, p.Reason = d.bad.Stat.Czxid, "build "+d.bad.ID+": "+d.why
		d.followed(flag != nil)
	case d.bad != nil: // it may only seem so
	case flag == nil && d.settled(since):
		if p.Reason == "" {
			p.Reason = "the request for its build was withdrawn"
			d.move(Cancelled, FlagStays)
			return
		}
		d.move(Failed, FlagStays)
	case flag == nil:
	default:
		d.followed(true)
	}
}

// unasked takes back the request of a job while all waves are held, unless it is being
// served, and makes it once they are not. It reports whether it has done either, or waits.
func (d *decision) unasked() bool {
	p, flag := &d.step.Progress, d.Image.BuildRequested
	taken := d.wave.unasked(*p)
	switch {
	case d.running != nil:
		p.Unasked = false
		return false
	case d.Hold == "" && !taken:
		return false
	case d.Hold == "":
		now := d.Now
		p.Asked, p.Estimate, p.Unasked, p.NotBefore = &now, EstimateOf(d.Image), false, nil
		d.move(Processing, d.flag())
	case taken:
		p.Note = d.Hold
	case flag == nil || flag.Czxid > d.Since && !d.Mine: // withdrawn, or another's
		return false
	default:
		p.Note, p.Unasked, p.NotBefore = d.Hold, true, nil
		if p.State == Pending {
			d.step.Flag = FlagTaken
			break
		}
		d.move(Pending, FlagTaken)
	}
	return true
}

// followed ends a job that was tried often enough, or says what it waits for.
func (d *decision) followed(asked bool) {
	p := &d.step.Progress
	switch {
	case p.Tries >= MaxTries:
		if asked {
			p.Reason += "; the request stays, and builders go on trying"
		}
		d.move(Failed, FlagStays)
	case asked && d.running == nil && d.Image.BuildRequested.Czxid > d.Since && !d.Mine:
		if p.Reason != "" {
			p.Reason += "; a later request for its build took the place of this one"
			d.move(Failed, FlagStays)
			return
		}
		p.Reason = "a later request for its build took the place of this one"
		d.move(Cancelled, FlagStays)
	case d.Paused != "" || d.Resting != "":
		d.step.Note = cmp.Or(d.Paused, d.Resting)
	case p.Reason != "":
		d.step.Note = "its builder tries again"
	case d.Window.After(d.Now):
		d.step.Note = "built as soon as a builder has room, although the next build window begins at " + d.Window.UTC().Format(time.RFC3339)
	default:
		d.absent()
	}
}

// settled reports whether what seems to be lost has seemed so for long enough; if not, it
// is looked at again.
func (d *decision) settled(since *time.Time) bool {
	if since != nil && !d.Now.Before(*since) {
		return true
	}
	if since == nil {
		at := d.Now.Add(settle)
		since = &at
	}
	d.step.NotBefore, d.step.Again = since, *since
	return false
}
