package plan

import (
	"slices"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// decideFiles says which files on this host go. Only a manifest of ours or a
// record with our builder's id makes a file ours to remove.
func (d *decision) decideFiles() {
	if d.Image.Unread != nil {
		return // as decideCleaning says
	}
	for _, local := range d.Local {
		if local.ID == d.InFlight.Builds {
			continue
		}
		b := d.record(local.ID)
		switch {
		case b == nil && local.Ours:
			d.removeFiles(local.ID, "the build has no record")
		case b == nil:
			d.say("files of "+local.ID, "keep", For, "nothing says that they are ours")
		case !local.Ours && (b.BuilderID == "" || b.BuilderID != d.Host.ID):
			d.say("files of "+local.ID, "keep", For, "they are those of builder %s", b.BuilderID)
		case b.Broken == nil && b.State == zkmodel.BuildDeleting:
			d.removeFiles(local.ID, "the build is being deleted")
		case b.Broken == nil && b.State == zkmodel.BuildFailed:
			d.decideFailedFiles(local)
		case !local.Ours:
			d.act(Action{Kind: Adopt, Build: local.ID, Why: "its record has our builder's id"})
		case b.Broken == nil && b.State == zkmodel.BuildReady && d.config != nil && d.config.DeleteAfterUpload && !d.doubtful():
			d.decideFormats(b, local)
		}
	}
}

// decideFailedFiles keeps what is small: the manifest of a failed build goes
// with its record.
func (d *decision) decideFailedFiles(local LocalBuild) {
	if len(local.Formats) > 0 || local.Ours {
		d.removeFiles(local.ID, "the build failed")
	}
}

func (d *decision) removeFiles(id, why string) {
	d.say("files of "+id, "keep", Against, "%s", why)
	d.act(Action{Kind: RemoveFiles, Build: id, Why: why})
}

// decideFormats removes, with delete-after-upload, the files that no provider
// waits for.
func (d *decision) decideFormats(b *zkmodel.BuildTree, local LocalBuild) {
	for _, format := range local.Formats {
		subject := "file " + local.ID + "." + format
		if slices.Contains(d.config.KeepFormats, format) {
			d.say(subject, "keep", For, "keep-formats lists it")
			continue
		}
		if waiting := d.waiting(b, format); waiting != "" {
			d.say(subject, "keep", For, "%s has not got it", waiting)
			continue
		}
		d.act(Action{Kind: RemoveFormat, Build: b.ID, Format: format, Why: "delete-after-upload: every provider has it"})
	}
}

// doubtful reports whether a provider may want the image of which we cannot know.
func (d *decision) doubtful() bool {
	if d.frozen != "" || d.Config.FrozenProvider("") != "" {
		return true
	}
	return slices.ContainsFunc(d.Config.Providers, func(p configs.Provider) bool {
		return d.Config.FrozenUpload(p.Name, d.name) != ""
	})
}

// waiting names a provider that still needs a build's file of a format.
func (d *decision) waiting(b *zkmodel.BuildTree, format string) string {
	for _, p := range d.Config.ProvidersOf(d.name) {
		if p.ImageFormat == format && readyUpload(b, p.Name) == nil && d.Image.Verdict(b.Build, p.Name) == nil {
			return p.Name
		}
	}
	return ""
}

// hasFiles reports whether anything of a build lies on this host.
func (d *decision) hasFiles(id string) bool {
	here, ok := d.local(id)
	return ok && (here.Ours || len(here.Formats) > 0)
}

// record finds the record of a build.
func (d *decision) record(id string) *zkmodel.BuildTree {
	for _, b := range d.Image.Builds {
		if b.ID == id {
			return b
		}
	}
	return nil
}
