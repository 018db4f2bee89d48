package wave

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// MaxTries is how often a job is tried, and how many uploads to a provider may fail in a row.
const MaxTries = 3

// GiveUp is how long a job waits for a builder that is not there before it is failed, or put
// back so that another builds.
const GiveUp = 30 * time.Minute

// Flag is what becomes of an image's request-build flag with a step of a job.
type Flag string

// What becomes of the flag.
const (
	FlagStays    Flag = ""
	FlagMade     Flag = "made"      // there is none
	FlagReplaced Flag = "replaced"  // there is one that no build will serve
	FlagTaken    Flag = "withdrawn" // if this wave made it
)

// Sight is what a decision about a job sees.
type Sight struct {
	Image *zkmodel.Image
	Since int64     // builds that began no later do not count
	Now   time.Time // ZooKeeper's
	// Cancel and Hold say that it is wanted, and why; "" that it is not; Paused why the image
	// is not built; Window when it may be built next.
	Cancel, Hold, Paused string
	Window               time.Time
	Closed               map[string]string         // providers that cannot be used, and why
	Absent               string                    // why perhaps no builder builds the image; "" when one does
	Nobody               bool                      // that is certain
	Resting              string                    // why all builders of the image build nothing now; "" when one does
	Full                 string                    // why no builder has the space for a build; "" when one has
	Gone                 func(builder string) bool // whether the builder of a build is not there; nil is never
	Room                 bool                      // one more build may be asked for
	Mine                 bool                      // the flag is this wave's, though it is younger than the wave
	// Passed is whether an upload that is sent and not ready is good by its trial, or has none;
	// nil is never.
	Passed  func(*zkmodel.Upload) bool
	Backoff func(failures int) time.Duration
}

// Step is what a decision comes to: the job's next progress, what becomes of the flag,
// and when time alone changes it.
type Step struct {
	Progress
	Flag    Flag
	Again   time.Time
	Running bool // a build that counts is under way
}

// Decide says what becomes of a job, of which nothing is over. It has no side effects.
func Decide(w *Wave, j Job, p Progress, s Sight) Step {
	d := decision{Sight: s, wave: w, job: j, step: Step{Progress: p}}
	d.since, d.step.Missing, d.step.Note = p.Missing, nil, ""
	switch d.look(); {
	case s.Cancel != "":
		d.step.Reason = s.Cancel
		d.move(Cancelled, FlagTaken)
	case d.replaced():
		d.move(Failed, FlagTaken)
	case d.ready != nil:
		d.built()
	case w.Follow:
		d.follow()
	case p.State == Processing:
		d.process()
	default:
		d.begin()
	}
	d.step.Running = d.running != nil
	return d.step
}

// decision is one under way.
type decision struct {
	Sight
	wave    *Wave
	job     Job
	step    Step
	ready   *zkmodel.BuildTree // the newest of those that count
	running *zkmodel.BuildTree
	bad     *zkmodel.BuildTree // the newest that failed, or whose builder is gone
	why     string             // it is bad
	lost    int                // how many are bad, up to that one
	since   *time.Time         // as of when a builder was missing
}

// move changes the state, and what becomes of the flag with it.
func (d *decision) move(to State, flag Flag) {
	if d.step.State == to {
		return
	}
	d.step.Flag = flag
	if to.Over() && d.step.State != Processing && to != Cancelled {
		_ = Move(&d.step.Progress, Processing, d.Now)
	}
	if err := Move(&d.step.Progress, to, d.Now); err != nil {
		d.step.Note = err.Error() // a mistake above; the tests of Decide find none
	}
}

// look finds the builds that count: those that began after the job, and after the last
// that was judged.
func (d *decision) look() {
	bar := max(d.Since, d.step.After)
	for i, b := range d.Image.Builds {
		if b.Broken != nil || b.Stat.Czxid <= bar {
			continue
		}
		switch b.State {
		case zkmodel.BuildReady:
			d.ready = b
		case zkmodel.BuildFailed:
			d.bad, d.why, d.lost = b, b.Reason, d.lost+1
		case zkmodel.BuildBuilding:
			if d.Image.BuildsLocked && i == len(d.Image.Builds)-1 {
				d.running = b
			} else {
				d.bad, d.why, d.lost = b, "its builder "+b.Builder+" is gone", d.lost+1
			}
		case zkmodel.BuildDeleting:
		}
	}
}

// replaced counts builds that failed or were lost before a builder began another one in their place. It reports whether these
// were the last tries of the job.
func (d *decision) replaced() bool {
	newer := d.ready
	if d.running != nil {
		newer = d.running
	}
	if d.step.State != Processing || d.wave.Follow || d.bad == nil || newer == nil || newer.Stat.Czxid < d.bad.Stat.Czxid {
		return false
	}
	d.step.Tries = min(d.step.Tries+d.lost, MaxTries)
	d.step.After, d.step.Reason = d.bad.Stat.Czxid, "build "+d.bad.ID+": "+d.why
	d.bad = nil
	return d.step.Tries == MaxTries && newer == d.running
}

// built follows a build that is ready to where the job ends.
func (d *decision) built() {
	p := &d.step.Progress
	if p.Builder != d.ready.Builder {
		d.since = nil // that was another one's absence
	}
	p.Build, p.Builder, p.Reason, p.NotBefore, p.Took = d.ready.ID, d.ready.Builder, "", nil, taken(d.ready)
	p.Uploads, p.Closed = nil, nil
	var waits, failed []string
	for _, provider := range d.job.Providers {
		upload, tries, reason := d.upload(provider)
		closed := d.Closed[provider]
		verdict := d.Image.Verdict(d.ready.Build, provider)
		if verdict != nil {
			closed = verdict.Text() // it is not sent there any more
		}
		switch {
		case verdict != nil && verdict.By == zkmodel.ByValidation:
			failed = append(failed, "validation at "+provider+": "+verdict.Text())
		case upload != "":
			p.Uploads = noted(p.Uploads, provider, upload)
		case closed != "":
			p.Closed = noted(p.Closed, provider, closed)
		case tries >= MaxTries:
			failed = append(failed, fmt.Sprintf("upload to %s failed %d times: %s", provider, tries, reason))
		default:
			waits = append(waits, provider)
		}
	}
	for provider, why := range d.job.Closed {
		p.Closed = noted(p.Closed, provider, why)
	}
	switch {
	case d.wave.Until == UntilBuilt:
		p.Uploads, p.Closed = nil, nil
		d.move(Completed, d.served())
	case len(failed) > 0:
		p.Reason = strings.Join(failed, "; ")
		d.move(Failed, d.served())
	case len(waits) > 0:
		d.move(Processing, FlagStays)
		p.Note = "waits for uploads to " + strings.Join(waits, ", ")
		if d.Gone != nil && d.Gone(d.ready.Builder) {
			d.stranded()
		}
	default:
		d.move(Completed, d.served())
	}
}

// stranded judges a build that is ready on a builder that is not there, with uploads to do.
func (d *decision) stranded() {
	if !d.missing() {
		d.step.Note += "; " + d.ready.Builder + ", which has the files, is not there: it is built again, unless that is back, at " + d.until()
		return
	}
	why := fmt.Sprintf("build %s: its builder %s, which has the files, has not been there for %s", d.ready.ID, d.ready.Builder, GiveUp)
	d.step.After, d.step.Took = d.ready.Stat.Czxid, nil
	d.step.Build, d.step.Builder, d.step.Uploads, d.step.Closed = "", "", nil, nil
	if d.wave.Follow {
		d.step.Reason = why
		d.move(Failed, FlagStays)
		return
	}
	d.failed(why)
}

// missing reports whether no builder has been there to go on for long enough, and notes
// since when.
func (d *decision) missing() bool {
	p := &d.step.Progress
	if p.Missing = d.since; p.Missing == nil {
		now := d.Now
		p.Missing = &now
	}
	if again := p.Missing.Add(GiveUp); d.Now.Before(again) {
		d.step.Again = again
		return false
	}
	p.Missing = nil
	return true
}

// until is when what is missing is given up.
func (d *decision) until() string { return d.step.Missing.Add(GiveUp).UTC().Format(time.RFC3339) }

// absent notes that perhaps no builder builds the image, or ends a job of which that is
// certain for long enough.
func (d *decision) absent() {
	switch d.step.Note = d.Absent; {
	case !d.Nobody:
	case !d.missing():
		d.step.Note += ": it fails, unless one comes, at " + d.until()
	default:
		flag := FlagTaken
		if d.wave.Follow {
			flag = FlagStays
		}
		d.step.Note, d.step.Reason = "", fmt.Sprintf("%s, for %s", d.Absent, GiveUp)
		d.move(Failed, flag)
	}
}

// served is what becomes of the flag once a build is ready: its builder clears one that
// the build serves. Ours goes if the build began before it.
func (d *decision) served() Flag {
	if flag := d.Image.BuildRequested; flag != nil && flag.Czxid > d.ready.Stat.Czxid {
		return FlagTaken
	}
	return FlagStays
}

func noted(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// upload finds the upload of a build that counts to a provider which is ready, or waits for a
// canary alone, or how often that failed in a row.
func (d *decision) upload(provider string) (ready string, tries int, reason string) {
	bar := max(d.Since, d.step.After)
	for _, b := range d.Image.Builds {
		if b.Stat.Czxid <= bar {
			continue
		}
		for _, u := range b.Uploads {
			switch {
			case u.Broken != nil || u.Provider != provider:
			case u.State == zkmodel.UploadReady, d.waitsForCanary(b, u):
				ready = b.ID + "/" + u.ID
			case u.State == zkmodel.UploadFailed && b == d.ready:
				tries, reason = max(1, u.Failures), u.Reason
			}
		}
	}
	return ready, tries, reason
}

// waitsForCanary reports whether an upload is as good as ready: nothing is in the way but another
// build, which is the canary there.
func (d *decision) waitsForCanary(b *zkmodel.BuildTree, u *zkmodel.Upload) bool {
	return u.OnTrial() && d.Passed != nil && d.Image.Waits(b.Build, u.Provider, false) != "" && d.Passed(u)
}

// process judges a job whose build was asked for, and is not ready.
func (d *decision) process() {
	flag := d.Image.BuildRequested
	d.step.Build, d.step.Builder, d.step.Uploads = "", "", nil
	switch {
	case d.running != nil:
	case d.bad != nil && d.bad.State == zkmodel.BuildBuilding && flag != nil && d.step.Tries+1 < MaxTries:
		// Another builder begins anew, as the flag is there.
		d.step.Tries++
		d.step.After, d.step.Reason = d.bad.Stat.Czxid, "build "+d.bad.ID+": "+d.why
	case d.bad != nil:
		d.step.After = d.bad.Stat.Czxid
		d.failed("build " + d.bad.ID + ": " + d.why)
	case d.Image.Unread != nil:
		d.step.Note = fmt.Sprintf("part of the image cannot be read: %v", d.Image.Unread)
	case flag == nil:
		d.failed("the request for its build was withdrawn, or its build is gone")
	case d.Paused != "" || d.Hold != "":
		d.step.Note = d.Paused + d.Hold
		d.move(Pending, FlagTaken)
	case d.Resting != "": // what it takes of max-parallel is for those that can be built
		d.step.Note = d.Resting
		d.move(Pending, FlagTaken)
	default:
		d.absent()
	}
}

// failed ends a try: the job is put back for the next, or was tried often enough.
func (d *decision) failed(why string) {
	d.step.Tries++
	d.step.Reason = why
	if d.step.Tries >= MaxTries {
		d.move(Failed, FlagTaken)
		return
	}
	next := d.Now.Add(d.Backoff(d.step.Tries))
	d.step.NotBefore = &next
	d.step.Again = next
	d.step.Note = "tried again at " + next.UTC().Format(time.RFC3339)
	d.move(Pending, FlagTaken)
}

// begin asks for the build of a job, unless something is in the way.
func (d *decision) begin() {
	if d.Hold != "" {
		d.step.Note = d.Hold
		d.move(Held, FlagStays)
		return
	}
	d.move(Pending, FlagStays)
	switch next := d.step.NotBefore; {
	case d.running != nil: // another's, which counts
		d.start(FlagStays)
	case d.Paused != "" || d.Resting != "":
		d.step.Note = cmp.Or(d.Paused, d.Resting)
	case next != nil && d.Now.Before(*next):
		d.step.Note, d.step.Again = "tried again at "+next.UTC().Format(time.RFC3339), *next
	case d.Window.After(d.Now) && d.flag() != FlagStays: // else a build begins for the flag all the same
		d.step.Note, d.step.Again = "next build window begins at "+d.Window.UTC().Format(time.RFC3339), d.Window
	case d.Image.Unread != nil:
		d.step.Note = fmt.Sprintf("part of the image cannot be read: %v", d.Image.Unread)
	case d.Full != "" && d.flag() != FlagStays:
		d.step.Note, d.step.Again = d.Full, d.Now.Add(time.Minute)
	case d.Room:
		d.start(d.flag())
	}
}

// flag says how the build is asked for: by a flag that is there, if a build will still
// begin for it.
func (d *decision) flag() Flag {
	asked := d.Image.BuildRequested
	switch {
	case asked == nil:
		return FlagMade
	case slices.ContainsFunc(d.Image.Builds, func(b *zkmodel.BuildTree) bool { return b.Stat.Czxid > asked.Czxid }):
		return FlagReplaced
	}
	return FlagStays
}

// start begins a try. What was bad before it began is not held against it.
func (d *decision) start(flag Flag) {
	if d.bad != nil {
		d.step.After = d.bad.Stat.Czxid
	}
	now := d.Now
	d.step.Asked, d.step.NotBefore, d.step.Estimate = &now, nil, EstimateOf(d.Image)
	d.move(Processing, flag)
}
