package plan

import (
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// decideUploads says which providers are to get which build.
func (d *decision) decideUploads() {
	if d.config == nil || d.frozen != "" {
		return
	}
	if d.Image.Unread != nil {
		d.say("uploads", "tree", Against, "part of the image cannot be read, so that nobody can tell what is missing: %v", d.Image.Unread)
		return
	}
	for _, p := range d.Config.ProvidersOf(d.name) {
		subject := "upload to " + p.Name
		if image, _ := p.Image(d.name); image.Pause {
			d.say(subject, "pause", Against, "the provider's diskimage is paused")
			continue
		}
		if pause := d.Paused[p.Name]; pause != nil {
			d.say(subject, "provider", Against, "%s", pause.Text())
			d.at(pause.Ends())
			continue
		}
		b := d.candidate(subject, p)
		if b != nil {
			d.decideUpload(subject, p, b)
		}
		if pinned := d.lostPin(p); pinned != nil && pinned != b {
			b = pinned
			d.decideUpload(subject, p, b)
		}
	}
}

// lostPin is the build that is pinned at a provider, when its upload is gone there and its
// file is here.
func (d *decision) lostPin(p *configs.Provider) *zkmodel.BuildTree {
	pin := d.Image.Pin(p.Name)
	for _, b := range d.ready {
		if pin == nil || !pin.Holds(b.Build) || readyUpload(b, p.Name) != nil || d.Image.Verdict(b.Build, p.Name) != nil {
			continue
		}
		if here, ok := d.local(b.ID); ok && slices.Contains(here.Formats, p.ImageFormat) {
			return b
		}
	}
	return nil
}

// candidate is the newest ready build that a provider can get from this
// builder. One that is only on another builder is waited for as long as that
// builder may come back.
func (d *decision) candidate(subject string, p *configs.Provider) *zkmodel.BuildTree {
	for _, b := range d.ready {
		if v := d.Image.Verdict(b.Build, p.Name); v != nil {
			d.say(subject, "verdict", Against, "build %s was %s; it is not sent there again, and the next comes by schedule or request", b.ID, v.Text())
			continue
		}
		if u := readyUpload(b, p.Name); u != nil {
			d.say(subject, "done", Against, "build %s is there as upload %s", b.ID, u.ID)
			return nil
		}
		if u := triedUpload(b, p.Name); u != nil {
			d.say(subject, "trial", Against, "build %s is there as upload %s, and is not to serve yet", b.ID, u.ID)
			return nil
		}
		if !slices.Contains(b.Formats, p.ImageFormat) {
			continue
		}
		if here, ok := d.local(b.ID); ok && slices.Contains(here.Formats, p.ImageFormat) {
			return b
		}
		if d.madeHere(b) {
			d.say(subject, "files", "", "the %s file of build %s was here, and is gone", p.ImageFormat, b.ID)
			continue
		}
		if d.Others.IsAlive(b.Builder) {
			d.say(subject, "files", Against, "the %s file of build %s is not on this builder but on %s", p.ImageFormat, b.ID, b.Builder)
			return nil
		}
		if given := d.Others.lastSeen(b.Builder).Add(d.Policy.AwayFor); d.Now.Before(given) {
			d.say(subject, "files", Against, "the %s file of build %s is on %s, which has until %s to come back",
				p.ImageFormat, b.ID, b.Builder, clock(given))
			d.at(given)
			return nil
		}
		d.say(subject, "files", "", "the %s file of build %s is lost with %s", p.ImageFormat, b.ID, b.Builder)
	}
	d.say(subject, "build", Against, "no ready build has a file in format %s", p.ImageFormat)
	return nil
}

// decideUpload says whether a build whose file is here is to be sent now.
func (d *decision) decideUpload(subject string, p *configs.Provider, b *zkmodel.BuildTree) {
	var failed *zkmodel.Upload
	for _, u := range b.Uploads { // the oldest first
		switch {
		case u.Provider != p.Name || u.Broken != nil:
		case u.State == zkmodel.UploadUploading:
			d.say(subject, "under way", Against, "build %s is on its way as upload %s", b.ID, u.ID)
			return
		case u.State == zkmodel.UploadFailed:
			failed = u
		}
	}
	key := UploadKey(d.name, b.ID, p.Name)
	if d.InFlight.Uploads[key] && d.InFlight.Sending != key {
		d.say(subject, "under way", Against, "this builder is at it")
		return
	}
	count := 0
	if failed != nil {
		count = max(1, failed.Failures)
		again := d.Policy.UploadAgain(failed, d.Now)
		if d.Now.Before(again) {
			d.say(subject, "back-off", Against, "retry at %s after %s; upload %s of build %s failed%s",
				clock(again), failures(count), failed.ID, b.ID, because(failed.Reason))
			d.at(again)
			return
		}
	}
	if d.InFlight.Ends {
		d.say(subject, "drain", Against, "this builder is about to stop")
		return
	}
	d.say(subject, "missing", For, "build %s is not there", b.ID)
	d.act(Action{
		Kind: Upload, Build: b.ID, Provider: p.Name, Format: p.ImageFormat,
		Why: "build " + b.ID + " is not at " + p.Name, Failures: count, Tried: d.isTried(b, p),
	})
}

// stranded reports whether a provider waits for a file of a build that nobody can
// send: it was on this host and is gone, or it is only on a builder that is gone.
// Such a builder is given up at a time; for what was lost here there is none.
func (d *decision) stranded(b *zkmodel.BuildTree) (given time.Time, is bool) {
	local, _ := d.local(b.ID)
	for _, p := range d.Config.ProvidersOf(d.name) {
		image, _ := p.Image(d.name)
		if image.Pause || readyUpload(b, p.Name) != nil || triedUpload(b, p.Name) != nil || d.Image.Verdict(b.Build, p.Name) != nil ||
			slices.Contains(local.Formats, p.ImageFormat) {
			continue
		}
		if d.madeHere(b) {
			return time.Time{}, true
		}
		if !d.Others.IsAlive(b.Builder) {
			return d.Others.lastSeen(b.Builder).Add(d.Policy.AwayFor), true
		}
	}
	return time.Time{}, false
}

// madeHere reports whether a build's files were, or are, in our folder. The name
// of the host would not do: another builder there has a folder of its own.
func (d *decision) madeHere(b *zkmodel.BuildTree) bool {
	return b.BuilderID != "" && b.BuilderID == d.Host.ID
}

// readyUpload finds the ready upload of a build to a provider.
func readyUpload(b *zkmodel.BuildTree, provider string) *zkmodel.Upload {
	for _, u := range b.Uploads {
		if u.Provider == provider && u.Broken == nil && u.State == zkmodel.UploadReady {
			return u
		}
	}
	return nil
}
