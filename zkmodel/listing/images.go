package listing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// broken is what stands for the state of a record that cannot be read.
const broken = "broken"

// Builds lists every build: dib-image-list. The ready builds of a paused image
// show as paused, to people; JSON tells both.
func Builds(images []*zkmodel.Image, now time.Time) *Table {
	t := &Table{columns: []column{
		{title: "ID", key: "id"},
		{title: "Image", key: "image"},
		{title: "Builder", key: "builder"},
		{title: "Formats", key: "formats"},
		{title: "State", key: "state"},
		{title: "Age", key: "age"},
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
		for _, b := range image.Builds {
			state := state(b.State, b.Broken)
			if image.Paused && b.State == zkmodel.BuildReady {
				state.text = "paused"
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
func Uploads(images []*zkmodel.Image, now time.Time) *Table {
	t := &Table{columns: []column{
		{title: "Build ID", key: "id"},
		{title: "Upload ID", key: "upload_id"},
		{title: "Provider", key: "provider"},
		{title: "Image", key: "image"},
		{title: "Provider Image Name", key: "external_name"},
		{title: "Provider Image ID", key: "external_id"},
		{title: "State", key: "state"},
		{title: "Age", key: "age"},
		{title: "Format", key: "format", detail: true},
		{title: "Progress", key: "progress", detail: true},
		{title: "Failures", key: "failures", detail: true},
		{title: "Retry In", key: "retry_at", detail: true},
		{title: "Reason", key: "reason", detail: true},
	}}
	for _, image := range images {
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				t.rows = append(t.rows, []cell{
					text(u.Build), text(u.ID), text(u.Provider), text(u.Image),
					text(u.ExternalName), foreign(u.ExternalID), state(u.State, u.Broken),
					since(changed(u.StateTime, u.Stat.Mtime), now),
					text(u.Format), progress(u.Progress), failures(u.Failures),
					retry(u.RetryAt, u.State == zkmodel.UploadFailed, now), reason(cmp.Or(u.Reason, u.Suspect), u.Broken),
				})
			}
		}
	}
	return t
}

// Images lists the flags of every image: image-status.
func Images(images []*zkmodel.Image, now time.Time) *Table {
	t := &Table{columns: []column{
		{title: "Image", key: "image"},
		{title: "Paused", key: "paused"},
		{title: "Build Request", key: "build_request"},
		{title: "Build Request Age", key: "build_request_age"},
	}}
	for _, image := range images {
		var request, asked cell
		if image.BuildRequested != nil {
			request, asked = text("pending"), since(image.BuildRequested.Ctime, now)
			if building(image) {
				request = text("building")
			}
		}
		t.rows = append(t.rows, []cell{text(image.Name), flag(image.Paused), request, asked})
	}
	return t
}

// building tells whether somebody builds the image at this moment.
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
