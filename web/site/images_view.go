package site

import (
	"fmt"
	"slices"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// imageView is one image with its builds, the newest first.
type imageView struct {
	Name   string
	Flags  []layout.Badge
	Builds []buildView
}

// buildView is one build with its uploads.
type buildView struct {
	ID       string
	State    layout.Badge
	Since    layout.When
	Formats  string
	Size     string
	Took     string // how long it took to build
	Builder  string
	Failures string
	Reason   string
	Log      string // link; "" when nobody has the log
	Uploads  []uploadView
}

// uploadView is one upload.
type uploadView struct {
	Provider string
	State    layout.Badge
	Since    layout.When
	Name, ID string // in the cloud
	Progress string
	Percent  int64 // of Progress
	Failures string
	Reason   string
}

// viewImage shows an image.
func (s *snapshot) viewImage(image *zkmodel.Image) imageView {
	v := imageView{Name: image.Name}
	if image.Paused {
		text := "paused"
		if image.PausedBy != nil {
			text = image.PausedBy.Text()
		}
		v.Flags = append(v.Flags, layout.Mark(text, "off"))
	}
	if image.Unread != nil {
		v.Flags = append(v.Flags, layout.Mark("cannot be read in part", "bad"))
	}
	if image.BuildRequested != nil {
		asked := layout.Moment(image.BuildRequested.Ctime, s.now)
		v.Flags = append(v.Flags, layout.Mark(listing.Words(" ", "build requested", asked.Ago, "ago"), "busy"))
	}
	if image.Verdicts != nil {
		for n := range image.Verdicts.Pins {
			if pin := &image.Verdicts.Pins[n]; image.Pin(pin.Provider) == pin {
				v.Flags = append(v.Flags, layout.Mark("build "+pin.Build+" pinned at "+pin.Provider, "off"))
			}
		}
		for _, one := range image.Stale() {
			v.Flags = append(v.Flags, layout.Mark(one.String(), "off"))
		}
	}
	for _, b := range slices.Backward(image.Builds) {
		v.Builds = append(v.Builds, s.viewBuild(image, b))
	}
	return v
}

// viewBuild shows a build.
func (s *snapshot) viewBuild(image *zkmodel.Image, b *zkmodel.BuildTree) buildView {
	v := buildView{
		ID: b.ID, State: layout.StateBadge(b.State, b.Broken), Since: layout.Moment(listing.Changed(b.StateTime, b.Stat.Mtime), s.now),
		Formats: strings.Join(b.Formats, ", "), Builder: b.Builder,
		Failures: s.failures(b.Failures, b.RetryAt), Reason: listing.Why(b.Reason, b.Broken), Log: s.log(b.Build),
	}
	var total int64
	for _, file := range b.Files {
		total += file.Size
	}
	v.Size = layout.Size(total)
	var took float64
	for _, phase := range b.Phases {
		took += phase
	}
	if took >= 1 {
		v.Took = listing.Span(layout.Seconds(took))
	}
	for _, u := range b.Uploads {
		one := s.viewUpload(u, image.Verdict(b.Build, u.Provider))
		if text := image.Canary(u.Provider).Uses(b.Build); text != "" && one.State.Kind != "bad" && u.State == zkmodel.UploadReady {
			one.State, one.Reason = layout.Mark("canary", "busy"), text
		}
		if u.OnTrial() {
			s.viewTrial(&one, u)
		}
		v.Uploads = append(v.Uploads, one)
	}
	return v
}

// viewUpload shows an upload, and what people said of its build there.
func (s *snapshot) viewUpload(u *zkmodel.Upload, verdict *zkmodel.Verdict) uploadView {
	v := uploadView{
		Provider: u.Provider, State: layout.StateBadge(u.State, u.Broken),
		Since: layout.Moment(listing.Changed(u.StateTime, u.Stat.Mtime), s.now),
		Name:  u.ExternalName, ID: u.ExternalID.Text(),
		Failures: s.failures(u.Failures, u.RetryAt), Reason: listing.Why(u.Reason, u.Broken),
	}
	if u.Suspect != "" && u.State == zkmodel.UploadReady {
		v.State = layout.Mark("suspect", "bad") // launchers boot an older one
		v.Reason = u.Suspect
	}
	if verdict != nil && u.State == zkmodel.UploadReady {
		v.State = layout.Mark(strings.ReplaceAll(string(verdict.Kind), "-", " "), "bad")
		v.Reason = verdict.Text()
	}
	if p := u.Progress; p != nil && p.Total > 0 && u.State == zkmodel.UploadUploading {
		v.Percent = int64(100 * float64(p.Sent) / float64(p.Total))
		v.Progress = fmt.Sprintf("%d%% of %s", v.Percent, layout.Size(p.Total))
		if p.Rate > 0 {
			v.Progress += fmt.Sprintf(", %s/s, %s left", layout.Size(int64(min(p.Rate, 1e15))), listing.Span(layout.Seconds(p.ETA)))
		}
	}
	return v
}

// viewTrial shows how far the trial of an upload has come.
func (s *snapshot) viewTrial(view *uploadView, u *zkmodel.Upload) {
	view.State = layout.Mark("on trial", "busy")
	view.Percent, view.Progress = 0, "" // it is sent
	v := zkmodel.ValidationOf(s.trials, u)
	if v == nil {
		return
	}
	if v.Canary {
		view.State = layout.Mark("waits", "busy")
	}
	view.Since, view.Reason = layout.Moment(v.Since.Time(), s.now), v.Text()
	if r := v.Result; r != nil {
		view.Since = layout.Moment(r.Since.Time(), s.now)
		if r.Tries > 0 {
			view.Failures = fmt.Sprintf("nodes failed: %d", r.Tries)
		}
	}
}

// failures tells of failures in a row, and how long they are waited out.
func (s *snapshot) failures(n int, again zkmodel.Epoch) string {
	return listing.Failures(n, again, s.now)
}
