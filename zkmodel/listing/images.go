package listing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// broken is what stands for the state of a record that cannot be read.
const broken = "broken"

// Builds lists every build: dib-image-list. In text, the ready builds of a paused image
// show as paused.
func Builds(images []*zkmodel.Image, now time.Time) *Table {
	t := &Table{kind: "builds", columns: []column{
		{title: "ID", key: "id"},
		{title: "Image", key: "image", by: ByImage},
		{title: "Builder", key: "builder"},
		{title: "Formats", key: "formats"},
		{title: "State", key: "state", by: ByState},
		{title: "Age", key: "age", own: "since"},
		{title: "Size", key: "size", detail: true},
		{title: "Failures", key: "failures", detail: true},
		{title: "Retry In", key: "retry_at", detail: true},
		{title: "Reason", key: "reason", detail: true},
		{key: "paused"},
		{key: "files"},
		{key: "exit_code"},
		{key: "phases"},
		{key: "tail"},
		{key: "log"},
	}}
	for _, image := range images {
		t.gaps(image, func(g zkmodel.Gap) bool { return g.Build == "" }, "image")
		for _, b := range image.Builds {
			t.note(b.Broken)
			state := state(b.State, b.Broken)
			if image.Paused && b.State == zkmodel.BuildReady {
				state.text, state.own = "paused", "paused" // JSON has the state, as Nodepool's web
			}
			t.rows = append(t.rows, []cell{
				text(b.Name()), text(b.Image), text(b.Builder), list(b.Formats), state,
				since(changed(b.StateTime, b.Stat.Mtime), now),
				size(sum(b.Files)), failures(b.Failures), retry(b.RetryAt, b.State == zkmodel.BuildFailed, now),
				reason(b.Reason, b.Broken),
				hidden(image.Paused), hidden(b.Files), hidden(b.ExitCode),
				hidden(b.Phases), text(b.Tail), text(b.Log),
			})
		}
	}
	return t
}

// Uploads lists every upload: image-list.
func Uploads(images []*zkmodel.Image, now time.Time) *Table { return uploads(images, now, nil) }

// uploads is Uploads with a column for trials, unless there is nothing that fills it.
func uploads(images []*zkmodel.Image, now time.Time, tried func(*zkmodel.Upload) cell) *Table {
	t := &Table{kind: "uploads", named: uploadName, columns: []column{
		{title: "Build ID", key: "id", own: "build_id"},
		{title: "Upload ID", key: "upload_id"},
		{title: "Provider", key: "provider", by: ByProvider},
		{title: "Image", key: "image", by: ByImage},
		{title: "Provider Image Name", key: "external_name"},
		{title: "Provider Image ID", key: "external_id"},
		{title: "State", key: "state", by: ByState},
		{title: "Age", key: "age", own: "since"},
		{title: "Format", key: "format", detail: true},
		{title: "Progress", key: "progress", detail: true},
		{title: "Failures", key: "failures", detail: true},
		{title: "Retry In", key: "retry_at", detail: true},
		{title: "Reason", key: "reason", detail: true},
	}}
	if tried != nil {
		t.columns = append(t.columns, column{title: "Trial", key: "trial", detail: true})
	}
	for _, image := range images {
		t.gaps(image, func(zkmodel.Gap) bool { return true }, "image", "id", "provider")
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				t.note(u.Broken)
				row := []cell{
					text(u.Build), text(u.ID), text(u.Provider), text(u.Image),
					text(u.ExternalName), foreign(u.ExternalID), state(u.State, u.Broken),
					since(changed(u.StateTime, u.Stat.Mtime), now),
					text(u.Format), progress(u.Progress), failures(u.Failures),
					retry(u.RetryAt, u.State == zkmodel.UploadFailed, now), reason(Words("; ", cmp.Or(u.Reason, said(image, b, u), u.Suspect), Undeleted(u.DeleteError)), u.Broken),
				}
				if tried != nil {
					row = append(row, tried(u))
				}
				t.rows = append(t.rows, row)
			}
		}
	}
	return t
}

// uploadName is the name of an upload: its build's, its provider and its id.
func uploadName(row []cell) string {
	return row[3].text + "-" + row[0].text + "/" + row[2].text + "/" + row[1].text
}

// Images lists the flags of images: image-status. An image's znode stays for ever, so
// those of which nothing is left are not listed: they are not configured, have no
// builds, and nobody asked for anything. configured may be nil: then it is not known.
func Images(images []*zkmodel.Image, now time.Time, configured func(image string) bool) *Table {
	return flags(images, now, configured, nil)
}

// flags is Images with a column for trials, unless there is nothing that fills it.
func flags(images []*zkmodel.Image, now time.Time, configured func(string) bool, tried func(*zkmodel.Image) cell) *Table {
	t := &Table{kind: "images", columns: []column{
		{title: "Image", key: "image", by: ByImage},
		{title: "Paused", key: "paused"},
		{title: "Build Request", key: "build_request"},
		{title: "Build Request Age", key: "build_request_age", own: "build_requested_at"},
		{title: "Reason", key: "reason", detail: true},
	}}
	if tried != nil {
		t.columns = append(t.columns, column{title: "Trials", key: "trials", detail: true})
	}
	for _, image := range images {
		known := configured == nil || configured(image.Name)
		if !known && bare(image) {
			continue
		}
		var request, asked cell
		if image.BuildRequested != nil {
			request, asked = text("pending"), since(image.BuildRequested.Ctime, now)
			if building(image) {
				request = text("building")
			}
		}
		row := []cell{text(image.Name), flag(image.Paused), request, asked, reason(cmp.Or(unserved(image, known), Words("; ", pausedBy(image), pins(image))), image.Unread)}
		if tried != nil {
			row = append(row, tried(image))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// said is what people said of a build where an upload of it is, whether it is pinned, and how
// far it has come as a canary.
func said(image *zkmodel.Image, b *zkmodel.BuildTree, u *zkmodel.Upload) string {
	if v := image.Verdict(b.Build, u.Provider); v != nil {
		return v.Text()
	}
	if pin := image.Pin(u.Provider); pin != nil && pin.Holds(b.Build) {
		return pin.Text()
	}
	return image.Canary(u.Provider).Uses(b.Build)
}

// pausedBy is what was said when an image was paused.
func pausedBy(image *zkmodel.Image) string {
	if image.PausedBy == nil {
		return ""
	}
	return image.PausedBy.Text()
}

// pins are those of an image.
func pins(image *zkmodel.Image) string {
	if image.Verdicts == nil {
		return ""
	}
	var list []string
	for n := range image.Verdicts.Pins {
		if pin := &image.Verdicts.Pins[n]; image.Pin(pin.Provider) == pin {
			list = append(list, "build "+pin.Build+" is "+pin.Text()+" at "+pin.Provider)
		}
	}
	for _, one := range image.Stale() {
		list = append(list, one.String())
	}
	return strings.Join(list, "; ")
}

// bare reports whether nothing is left of an image but its znode.
func bare(image *zkmodel.Image) bool {
	return len(image.Builds) == 0 && !image.Paused && image.BuildRequested == nil && !image.BuildsLocked && image.Unread == nil
}

// unserved says why nothing comes of an image, as far as its configuration tells.
func unserved(image *zkmodel.Image, configured bool) string {
	switch {
	case configured:
		return ""
	case image.BuildRequested != nil:
		return "it is not in the configuration here: a builder that has it serves the request, or image-build-cancel withdraws it"
	}
	return "it is not in the configuration here"
}

// gaps adds a row for each list of an image's records that could not be read, if the
// listing is to show what would be in it. The keys are those of the columns that tell
// what it is the list of: image, build and provider.
func (t *Table) gaps(image *zkmodel.Image, shows func(zkmodel.Gap) bool, keys ...string) {
	for _, gap := range image.Gaps {
		if !shows(gap) {
			continue
		}
		t.note(gap.Err)
		row := make([]cell, len(t.columns))
		for i, c := range t.columns {
			switch at := slices.Index(keys, c.key); {
			case at >= 0:
				row[i] = text([]string{image.Name, gap.Build, gap.Provider}[at])
			case c.key == "state":
				row[i] = text(broken)
			case c.key == "reason":
				row[i] = reason("", gap.Err)
			}
		}
		t.rows = append(t.rows, row)
	}
}

// building reports whether the image is being built at this moment.
func building(image *zkmodel.Image) bool {
	return image.BuildsLocked && slices.ContainsFunc(image.Builds, func(b *zkmodel.BuildTree) bool {
		return b.State == zkmodel.BuildBuilding
	})
}

// state is a record's state, as it stands there.
func state[S ~string](s S, unreadable error) cell {
	if unreadable != nil {
		return text(broken)
	}
	return text(s)
}

// reason is why a record failed, or why it cannot be read.
func reason(why string, unreadable error) cell {
	if unreadable != nil {
		why = unreadable.Error()
	}
	return text(why)
}

// failures is the number of failures in a row; none prints as nothing.
func failures(n int) cell {
	if n == 0 {
		return hidden(0)
	}
	return number(n)
}

// changed is when the state changed; the time of the last write where the record
// does not say.
func changed(at zkmodel.Epoch, written time.Time) time.Time {
	if at == 0 {
		return written
	}
	return at.Time()
}

// sum is the size of all files of a build, in bytes.
func sum(files map[string]zkmodel.ImageFile) (bytes int64) {
	for file := range maps.Values(files) {
		bytes += file.Size
	}
	return bytes
}
