package plan

import (
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/planted"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rebuild"
)

// decideCleaning says which uploads and builds go.
func (d *decision) decideCleaning() {
	if d.Image.Unread != nil {
		d.say("image", "keep", For, "nothing is removed while part of it cannot be read: %v", d.Image.Unread)
		return
	}
	recent := d.recentUploads()
	for _, b := range d.Image.Builds {
		fate := d.fate(b)
		for _, u := range b.Uploads {
			if v := d.Image.Verdict(b.Build, u.Provider); v != nil {
				d.say("upload "+b.ID+"/"+u.Provider+"/"+u.ID, "verdict", Against, "no node boots from it: its build was %s", v.Text())
			}
			d.decideUploadsEnd(b, u, fate, recent[u])
		}
		if fate.stays == "" {
			d.decideBuildsEnd(b, fate.why)
		}
	}
}

// fate is what becomes of a build: why it stays, or why it goes.
type fate struct {
	stays string
	why   string
	dying bool // its uploads go whatever they are
}

func (d *decision) fate(b *zkmodel.BuildTree) fate {
	subject := "build " + b.ID
	f := d.judge(b)
	if f.stays != "" {
		d.say(subject, "keep", For, "%s", f.stays)
	} else {
		d.say(subject, "keep", Against, "%s", f.why)
	}
	return f
}

func (d *decision) judge(b *zkmodel.BuildTree) fate {
	switch {
	case b.Unknown():
		return fate{stays: "its record cannot be read: " + b.Broken.Error()}
	case b.Broken != nil && d.hasFiles(b.ID):
		return fate{stays: "its record is empty, and files of it are here"}
	case b.Broken != nil:
		return fate{why: "its record is empty"}
	case b == d.building && b.State == zkmodel.BuildDeleting:
		return fate{stays: "it is marked for deletion, and goes once its builder has ended the build"}
	case b.State == zkmodel.BuildDeleting:
		return fate{why: "it is marked for deletion", dying: true}
	case b == d.building || b.State == zkmodel.BuildBuilding && b.ID == d.InFlight.Builds:
		return fate{stays: "it is being built"}
	case b.State == zkmodel.BuildBuilding:
		return fate{why: "the builder that made it is gone"}
	case d.frozen != "":
		return fate{stays: "the image is left out of the configuration, and frozen: " + d.frozen}
	case d.config == nil:
		return fate{why: "the image is not in the configuration"}
	case d.pinned(b) != nil:
		pin := d.pinned(b)
		return fate{stays: "it is " + pin.Text() + ", at " + pin.Provider}
	case d.proving(b) != "":
		return fate{stays: d.proving(b)}
	case b.State == zkmodel.BuildReady:
		if i := slices.Index(d.ready, b); i < d.keepBuilds() {
			return fate{stays: "it is one of the newest"}
		}
		return fate{why: "newer builds are ready"}
	case b == d.failed:
		return fate{stays: "it tells why the last try failed"}
	case b.State == zkmodel.BuildFailed:
		return fate{why: "it failed, and a later build tells more"}
	}
	return fate{stays: "its state " + string(b.State) + " is unknown to us"}
}

// pinned is the pin that keeps a build: at a provider that has the image, or is to have it.
func (d *decision) pinned(b *zkmodel.BuildTree) *zkmodel.Pin {
	if d.Image.Verdicts == nil {
		return nil
	}
	for i := range d.Image.Verdicts.Pins {
		pin := &d.Image.Verdicts.Pins[i]
		if !pin.Holds(b.Build) {
			continue
		}
		listed := slices.ContainsFunc(d.Config.ProvidersOf(d.name), func(p *configs.Provider) bool { return p.Name == pin.Provider })
		if listed || slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.Provider == pin.Provider }) {
			return pin
		}
	}
	return nil
}

// proving says why a build stays while another is proven, at a provider where it is to be.
func (d *decision) proving(b *zkmodel.BuildTree) string {
	for _, p := range d.Config.ProvidersOf(d.name) {
		if why := d.Image.Kept(b.Build, p.Name); why != "" {
			return why
		}
	}
	return ""
}

// toLeave reports whether an operator wants a build out of the reach of all launchers in
// the provider of an upload.
func (d *decision) toLeave(b *zkmodel.BuildTree, u *zkmodel.Upload) bool {
	v := d.Image.Verdict(b.Build, u.Provider)
	return v != nil && v.Delete && u.State == zkmodel.UploadReady
}

// keepBuilds is how many ready builds of the image stay, and uploads at each
// provider. The last one always does.
func (d *decision) keepBuilds() int {
	if d.config == nil {
		return 1
	}
	return max(1, d.config.KeepBuilds)
}

// recentUploads are the newest ready uploads at each provider. They stay while
// the image is configured, however old their builds are: an upload is only
// replaced by one that is ready. One that launchers found not to boot, or that was rolled
// back or rejected, replaces nothing, so that the last good one stays however many bad ones
// follow. The uploads of a pinned build stay with it.
func (d *decision) recentUploads() map[*zkmodel.Upload]bool {
	recent := map[*zkmodel.Upload]bool{}
	all, good := map[string]int{}, map[string]int{}
	for _, b := range d.ready { // the newest first
		for _, u := range slices.Backward(b.Uploads) {
			if u.Broken != nil || u.State != zkmodel.UploadReady || d.toLeave(b, u) { // what leaves replaces nothing
				continue
			}
			count := all
			if u.Suspect == "" && d.Image.Verdict(b.Build, u.Provider) == nil {
				count = good
				good[u.Provider]++
			}
			all[u.Provider]++
			recent[u] = count[u.Provider] <= d.keepBuilds() && !planted.Bug("keep")
		}
	}
	return recent
}

// decideUploadsEnd says whether an upload goes. Those of providers that this
// builder does not have are for others, or for an operator.
func (d *decision) decideUploadsEnd(b *zkmodel.BuildTree, u *zkmodel.Upload, f fate, recent bool) {
	subject := "upload " + b.ID + "/" + u.Provider + "/" + u.ID
	p, ok := d.Config.Provider(u.Provider)
	if !ok {
		hint := ", or erase " + u.Provider + " forgets all records of the provider"
		if d.Config.IsSkipped(u.Provider) || d.Config.FrozenProvider(u.Provider) != "" {
			hint = ""
		}
		d.say(subject, "provider", For, "this builder does not serve provider %s: one that does deletes what is to be deleted%s", u.Provider, hint)
		return
	}
	if u.Unknown() && !planted.Bug("garbled") {
		d.say(subject, "keep", For, "its record cannot be read: %v", u.Broken)
		return
	}
	why, frozen := d.whyGone(b, u, p, f, recent)
	if u.OnTrial() {
		d.decideTrial(b, u, why)
		return
	}
	if frozen != "" {
		d.say(subject, "keep", For, "it is left out of the configuration, and frozen: %s", frozen)
		return
	}
	if why == "" {
		d.say(subject, "keep", For, "state %s", u.State)
		return
	}
	sent := u.State == zkmodel.UploadUploading || u.State == zkmodel.UploadDeleting && b.Newest(u) // marked while it runs
	if sent && d.InFlight.Uploads[UploadKey(d.name, b.ID, u.Provider)] {
		d.say(subject, "keep", For, "this builder is at it")
		return
	}
	if until := mayComeUntil(u, p, d.Now); d.Now.Before(until) {
		d.say(subject, "unanswered", For, "%s; until %s the cloud may still create image %s", why, clock(until), u.AskedID)
		d.at(until)
		return
	}
	d.say(subject, "keep", Against, "%s", why)
	kind := DeleteUpload
	if u.State == zkmodel.UploadUploading {
		kind = ReclaimUpload
	}
	d.leaving[u] = true
	d.act(Action{Kind: kind, Build: b.ID, Provider: u.Provider, Upload: u.ID, Why: why})
}

// mayComeUntil is until when a cloud that did not answer may still create the image of an upload; zero if it answered.
func mayComeUntil(u *zkmodel.Upload, p *configs.Provider, now time.Time) time.Time {
	if u.Asked == 0 {
		return time.Time{}
	}
	return rebuild.Since(u.Asked, zkmodel.NoLater(u.Asked, u.Stat), now).Add(p.UnansweredCreateTimeout)
}

// whyGone says why an upload goes, "" when it stays, and why nothing follows from that it
// is left out of the configuration.
func (d *decision) whyGone(b *zkmodel.BuildTree, u *zkmodel.Upload, p *configs.Provider, f fate, recent bool) (why, frozen string) {
	_, listed := p.Image(d.name)
	frozen = d.Config.FrozenUpload(u.Provider, d.name)
	switch {
	case u.Broken != nil:
		return "its record is empty", ""
	case u.State == zkmodel.UploadDeleting:
		return "it is marked for deletion", ""
	case f.dying:
		return "its build is being deleted", ""
	case frozen != "":
		return "", frozen
	case !listed:
		return u.Provider + " no longer lists the image", ""
	case d.config == nil:
		return "the image is not in the configuration", ""
	case u.OnTrial():
		return f.why, "" // of the build, if that goes
	case u.State == zkmodel.UploadUploading:
		return d.abandoned(u, p), ""
	case d.toLeave(b, u):
		return "its build does not serve there, and an operator wants it deleted", ""
	case f.stays == "" && !recent:
		return "newer uploads are ready", ""
	case u.State == zkmodel.UploadFailed && d.superseded(b, u):
		return "it failed, and a later upload tells more", ""
	}
	return "", ""
}

// abandoned presumes why nobody is at an upload any more; "" when somebody may
// be. Whoever acts on it makes sure with the upload's lock.
func (d *decision) abandoned(u *zkmodel.Upload, p *configs.Provider) string {
	latest := rebuild.Since(u.StateTime, zkmodel.NoLater(u.StateTime, u.Stat), d.Now).Add(p.ImageUploadTimeout)
	switch {
	case u.Builder == d.Host.Name || u.Builder == "":
		return "nobody is at it"
	case !d.Others.IsAlive(u.Builder):
		return "builder " + u.Builder + " is gone"
	case p.ImageUploadTimeout > 0 && !d.Now.Before(latest) && Adrift(d.Host.ClockOff):
		d.say("upload "+u.Build+"/"+u.Provider+"/"+u.ID, "age", For,
			"it takes longer than image-upload-timeout; the clock of this host is off by %s, so nothing goes by age", d.Host.ClockOff.Round(time.Second))
		return ""
	case p.ImageUploadTimeout > 0 && !d.Now.Before(latest):
		return "it takes longer than image-upload-timeout"
	}
	d.at(latest)
	return ""
}

// superseded reports whether a failed upload says nothing any more: its build has a later one there, or one that is
// ready (whose record could not be read for a while, so that it was sent again, in vain); or its build is not sent there
// again, as a newer one serves. Its record is the back-off: while the build may be sent, it stays.
func (d *decision) superseded(b *zkmodel.BuildTree, u *zkmodel.Upload) bool {
	for _, v := range b.Uploads {
		if v.Provider == u.Provider && v.Broken == nil && v.State != zkmodel.UploadDeleting &&
			(v.Stat.Czxid > u.Stat.Czxid || v.State == zkmodel.UploadReady) {
			return true
		}
	}
	if pin := d.Image.Pin(u.Provider); pin != nil && pin.Holds(b.Build) {
		return false // it is sent beside newer ones
	}
	for _, newer := range d.ready { // as candidate looks at them
		if newer.Stat.Czxid > b.Stat.Czxid && d.Image.Verdict(newer.Build, u.Provider) == nil &&
			(readyUpload(newer, u.Provider) != nil || triedUpload(newer, u.Provider) != nil) {
			return true
		}
	}
	return false
}

// decideBuildsEnd lets a build go once no upload of it is to stay.
func (d *decision) decideBuildsEnd(b *zkmodel.BuildTree, why string) {
	for _, u := range b.Uploads {
		if u.State != zkmodel.UploadDeleting && !d.leaving[u] {
			d.say("build "+b.ID, "uploads", For, "upload %s/%s stays", u.Provider, u.ID)
			return
		}
	}
	if len(b.Uploads) == 0 {
		d.act(Action{Kind: DeleteBuild, Build: b.ID, Why: why})
		return
	}
	if b.State != zkmodel.BuildDeleting && b.Broken == nil {
		d.act(Action{Kind: MarkBuild, Build: b.ID, Why: why})
	}
}
