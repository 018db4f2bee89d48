package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rebuild"
)

const subjectBuild = "build"

// decideBuild says whether the image is to be built now, and when to ask again.
func (d *decision) decideBuild() {
	requested, fresh := d.requested()
	if !d.mayBuild() {
		return
	}
	why, due := d.reason(requested)
	d.plan.Due = due // also while it is built, or this host cannot: a build that hangs makes nothing fresh
	if !d.freeToBuild() {
		return
	}
	if why == "" {
		d.at(due)
		return
	}
	if !fresh {
		if again := d.hold(requested); !again.IsZero() {
			d.at(again)
			return
		}
	}
	if !d.hasSpace() {
		d.at(d.Now.Add(time.Minute))
		return
	}
	d.act(Action{Kind: Build, Requested: requested, Why: why, Failures: d.buildFailures()})
}

// requested reports whether somebody waits for a build, and whether no build was
// tried since. A build that began after the request serves it, whatever it was
// made for; one that failed leaves it to wait like any other reason.
func (d *decision) requested() (is, fresh bool) {
	flag := d.Image.BuildRequested
	if flag == nil {
		d.say(subjectBuild, "requested", "", "no request-build")
		return false, false
	}
	if len(d.ready) > 0 && d.ready[0].Stat.Czxid > flag.Czxid {
		d.say(subjectBuild, "requested", Against, "build %s began after the request of %s", d.ready[0].ID, clock(flag.Ctime))
		if d.InFlight.Builds == "" { // else the builder of it does so
			d.act(Action{Kind: ClearRequest, Build: d.ready[0].ID, Why: "build " + d.ready[0].ID + " served it"})
		}
		return false, false
	}
	if d.failed != nil && d.failed.Stat.Czxid > flag.Czxid {
		return true, false
	}
	return true, true
}

// mayBuild asks the rules that forbid builds of the image by this builder, whatever speaks for one.
func (d *decision) mayBuild() bool {
	if d.frozen != "" {
		d.say(subjectBuild, "configured", Against, "image %s is left out of the configuration: %s", d.name, d.frozen)
		return false
	}
	if d.config == nil {
		d.say(subjectBuild, "configured", Against, "image %s is not in the configuration of this builder%s", d.name, d.orphaned())
		return false
	}
	return d.open([]gate{
		{"pause", d.config.Pause, "paused by the configuration"},
		{"pause flag", d.Image.Paused, d.Image.PauseText()},
		{"formats", len(d.wanted) == 0, "no format: no provider of this builder lists it and it has no formats of its own" + d.foreign()},
		{"selection", d.Config.Unselected(d.name) != "", "another builder's: " + d.Config.Unselected(d.name)},
		{
			"architecture", d.config.Architecture != "" && d.Host.Arch != "" && d.config.Architecture != d.Host.Arch,
			"needs a builder of architecture " + d.config.Architecture + ", this one has " + d.Host.Arch,
		},
	})
}

// freeToBuild asks the rules that forbid a build at this moment and on this host.
func (d *decision) freeToBuild() bool {
	return d.open([]gate{
		{"host", d.Host.Unfit != "", "this builder has withdrawn, its host cannot build: " + d.Host.Unfit},
		{"build lock", d.Image.BuildsLocked && !d.InFlight.Locked || d.InFlight.Builds != "", d.beingBuilt()},
	})
}

// beingBuilt names the build that has the build lock.
func (d *decision) beingBuilt() string {
	if d.building == nil {
		return "it is being built"
	}
	return fmt.Sprintf("build %s is being built on %s since %s", d.building.ID, cmp.Or(d.building.Builder, "this host"), clock(d.building.Stat.Ctime))
}

// gate is a rule that forbids a build while it is closed, with why.
type gate struct {
	rule   string
	closed bool
	detail string
}

// open reports whether all gates are.
func (d *decision) open(gates []gate) bool {
	for _, g := range gates {
		if g.closed {
			d.say(subjectBuild, g.rule, Against, "%s", g.detail)
			return false
		}
		d.say(subjectBuild, g.rule, "", "not in the way")
	}
	return true
}

// orphaned says what becomes of a request for a build that this builder cannot serve:
// another one may have the image, so that it is not ours to withdraw.
func (d *decision) orphaned() string {
	if d.Image.BuildRequested == nil {
		return ""
	}
	return fmt.Sprintf("; the request-build of %s waits for one that has it, or for image-build-cancel", clock(d.Image.BuildRequested.Ctime))
}

// foreign names the providers that list the image, but have a driver that Poolkeeper
// lacks: a Nodepool has to build for them.
func (d *decision) foreign() string {
	var text strings.Builder
	for _, p := range d.Config.Foreign {
		if slices.Contains(p.Images, d.name) {
			fmt.Fprintf(&text, "; provider %s does, whose driver %s is not supported", p.Name, p.Driver)
		}
	}
	return text.String()
}

// reason says why the image is to be built, and since when, or else when time will say so.
func (d *decision) reason(requested bool) (why string, due time.Time) {
	if requested {
		d.say(subjectBuild, "requested", For, "request-build since %s", clock(d.Image.BuildRequested.Ctime))
		return "requested", d.Image.BuildRequested.Ctime
	}
	newest, covered := d.newestCovering()
	if d.Image.Unread != nil && !covered {
		d.say(subjectBuild, "missing", Against, "there may be a ready build; part of the image cannot be read: %v", d.Image.Unread)
		return "", due
	}
	if len(d.ready) == 0 {
		d.say(subjectBuild, "missing", For, "there is no ready build")
		return "no ready build", due
	}
	if !covered {
		d.say(subjectBuild, "formats", For, "no ready build has all of %s", strings.Join(d.wanted, ","))
		return "no ready build in all formats: " + strings.Join(d.wanted, ","), due
	}
	d.say(subjectBuild, "missing", "", "build %s is ready in all formats", newest.ID)
	given, stranded := d.stranded(newest)
	stranded = stranded && d.Image.Unread == nil
	if stranded && d.madeHere(newest) {
		d.say(subjectBuild, "stranded", For, "a provider waits for a file of build %s that is gone from this host", newest.ID)
		return "build " + newest.ID + " cannot be uploaded: its file is gone from here", due
	}
	if stranded && !d.Now.Before(given) {
		d.say(subjectBuild, "stranded", For, "only %s has the files of build %s, and it is gone", newest.Builder, newest.ID)
		return "build " + newest.ID + " cannot be uploaded: builder " + newest.Builder + " is gone", due
	}
	age, hasAge := rebuild.DueByAge(d.config, newest.Build, d.Now)
	if hasAge && !d.Now.Before(age) {
		d.say(subjectBuild, "rebuild-age", For, "build %s was too old at %s", newest.ID, clock(age))
		return "build " + newest.ID + " is older than rebuild-age", age
	}
	next, scheduled, err := rebuild.DueBySchedule(d.config, newest.Build)
	switch {
	case err != nil:
		d.say(subjectBuild, "rebuild-schedule", Against, "%v", err)
	case scheduled && !d.Now.Before(next):
		d.say(subjectBuild, "rebuild-schedule", For, "due since %s", clock(next))
		return "scheduled for " + clock(next), next
	}
	due = earliest(hasAge, age, scheduled, next)
	if stranded && (due.IsZero() || given.Before(due)) {
		d.say(subjectBuild, "stranded", Against, "builder %s with the files of build %s has until %s to come back",
			newest.Builder, newest.ID, clock(given))
		due = given
	}
	if due.IsZero() {
		d.say(subjectBuild, "due", Against, "neither rebuild-age nor rebuild-schedule asks for it")
	} else {
		d.say(subjectBuild, "due", Against, "next rebuild at %s", clock(due))
	}
	return "", due
}

// newestCovering finds the newest ready build that has all formats which this
// builder wants. Builders with other providers want others; their builds must
// not make us build again, in turns.
func (d *decision) newestCovering() (*zkmodel.BuildTree, bool) {
	for _, b := range d.ready {
		if !slices.ContainsFunc(d.wanted, func(f string) bool { return !slices.Contains(b.Formats, f) }) {
			return b, true
		}
	}
	return nil, false
}

// hold says until when a build has to wait that nobody has just asked for; zero
// when it has not.
func (d *decision) hold(requested bool) time.Time {
	var until time.Time
	if d.failed != nil {
		until = d.Policy.BuildAgain(d.failed.Build, d.Now)
		if d.Now.Before(until) {
			d.say(subjectBuild, "back-off", Against, "retry at %s after %s, or at once with image-build; build %s failed%s",
				clock(until), failures(d.failed.Failures), d.failed.ID, because(d.failed.Reason))
			return until
		}
	}
	if window := d.config.NextWindow(d.Now); !requested && window.After(d.Now) {
		d.say(subjectBuild, "build-windows", Against, "next window begins at %s", clock(window))
		return window
	}
	d.say(subjectBuild, "waiting", "", "neither back-off nor build-windows hold it")
	return time.Time{}
}

// failures counts failures in a row in words.
func failures(n int) string {
	if n <= 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

// because adds the reason of a failure, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// hasSpace compares the free space with what the last build came to.
func (d *decision) hasSpace() bool {
	if d.Host.Free < 0 {
		return true
	}
	need := d.Config.BuildDiskReserve
	if len(d.ready) > 0 {
		var last int64
		for _, f := range d.ready[0].Files {
			last += f.Size
		}
		need += int64(float64(last) * d.Policy.SpaceFactor)
	}
	room := fmt.Sprintf("%s free, about %s needed", humanize.IBytes(uint64(d.Host.Free)), humanize.IBytes(uint64(need)))
	if d.Host.Free >= need {
		d.say(subjectBuild, "disk space", "", "%s", room)
		return true
	}
	d.say(subjectBuild, "disk space", Against, "the disk is full: %s", room)
	d.plan.NoSpace = room
	return false
}

// buildFailures counts the failures in a row before this build.
func (d *decision) buildFailures() int {
	if d.failed == nil {
		return 0
	}
	return max(1, d.failed.Failures)
}

// earliest is the earlier of two times that may be absent, and are zero then.
func earliest(hasA bool, a time.Time, hasB bool, b time.Time) time.Time {
	if hasA && (!hasB || a.Before(b)) {
		return a
	}
	return b
}
