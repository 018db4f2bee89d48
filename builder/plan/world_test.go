package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/zkmodel"
)

// world is a tree, clouds and two builders' disks, which actions change as the
// builders do.
type world struct {
	*scene
	disks    map[string][]LocalBuild // by host
	cloud    map[string]bool         // uploads that are in a cloud, by path
	failures int                     // builds and uploads that are still to fail
}

// hosts are the builders of the world. There was a third.
func hosts() []Host {
	return []Host{
		{Name: "me.example.org", ID: "my-id", Arch: "amd64", Free: -1},
		{Name: "other.example.org", ID: "other-id", Arch: "amd64", Free: -1},
	}
}

// as is the world as one builder sees it.
func (w *world) as(h Host) Input {
	w.Host, w.Local, w.Logs = h, w.disks[h.Name], nil
	if h.ID == "my-id" {
		w.Logs = map[string]Log{}
		for _, b := range w.Image.Builds {
			w.Logs[b.ID] = Log{URL: "http://me/" + b.ID, Here: b.ID > "0000000003"}
		}
	}
	return w.Input
}

// anyWorld is a tree that nobody in his right mind would make: records in all
// states, foreign and broken ones, of builders that are here, there and gone.
func anyWorld(t *rapid.T) *world {
	w := &world{scene: newScene(), disks: map[string][]LocalBuild{}, cloud: map[string]bool{}, failures: rapid.IntRange(0, 3).Draw(t, "failures")}
	w.image().KeepBuilds = rapid.IntRange(1, 3).Draw(t, "keep-builds")
	w.image().DeleteAfterUpload = rapid.Bool().Draw(t, "delete-after-upload")
	w.Image.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
	if rapid.IntRange(0, 9).Draw(t, "unconfigured") == 0 {
		w.Config.DiskImages = nil
		for i := range w.Config.Providers {
			w.Config.Providers[i].DiskImages = nil
		}
	} else if rapid.IntRange(0, 4).Draw(t, "south gone") == 0 {
		w.Config.Providers[1].DiskImages = nil
	}
	w.Others.Since = w.Now.Add(-rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "since"))
	for range rapid.IntRange(0, 6).Draw(t, "builds") {
		w.anyBuild(t)
	}
	if rapid.Bool().Draw(t, "requested") {
		w.request()
	}
	w.anyVerdicts(t)
	for _, h := range hosts() {
		for range rapid.IntRange(0, 1).Draw(t, "lone files") {
			id := fmt.Sprintf("%010d", rapid.IntRange(9000, 9009).Draw(t, "id"))
			w.disks[h.Name] = append(w.disks[h.Name], LocalBuild{
				ID: id, Formats: []string{"qcow2"}, Ours: rapid.Bool().Draw(t, "ours"),
			})
		}
	}
	return w
}

func (w *world) anyBuild(t *rapid.T) {
	state := rapid.SampledFrom([]zkmodel.BuildState{
		zkmodel.BuildReady, zkmodel.BuildReady, zkmodel.BuildFailed, zkmodel.BuildBuilding, zkmodel.BuildDeleting, "",
	}).Draw(t, "state")
	ago := time.Duration(rapid.IntRange(0, 30).Draw(t, "ago")) * time.Hour
	b := w.build(state, ago, func(b *zkmodel.Build) {
		b.Builder = rapid.SampledFrom([]string{"me.example.org", "other.example.org", "gone.example.org"}).Draw(t, "builder")
		b.BuilderID = map[string]string{"me.example.org": "my-id", "other.example.org": "other-id"}[b.Builder]
		b.Formats = rapid.SampledFrom([]zkmodel.Formats{{"qcow2", "raw"}, {"qcow2"}, {"raw"}, nil}).Draw(t, "formats")
		b.Failures = rapid.IntRange(0, 3).Draw(t, "failed")
		if state == "" {
			b.Broken = errors.New("empty")
			b.Stat.Version = rapid.Int32Range(0, 1).Draw(t, "version") // 1 held something once
		}
	})
	w.disks[b.Builder] = append(w.disks[b.Builder], LocalBuild{
		ID: b.ID, Formats: b.Formats, Ours: rapid.Bool().Draw(t, "ours"),
	})
	for range rapid.IntRange(0, 3).Draw(t, "uploads") {
		provider := rapid.SampledFrom([]string{"north", "south"}).Draw(t, "provider")
		state := rapid.SampledFrom([]zkmodel.UploadState{
			zkmodel.UploadReady, zkmodel.UploadReady, zkmodel.UploadFailed, zkmodel.UploadUploading, zkmodel.UploadDeleting, "",
		}).Draw(t, "upload state")
		w.upload(b, provider, state, func(u *zkmodel.Upload) {
			u.Builder = rapid.SampledFrom([]string{"me.example.org", "gone.example.org", ""}).Draw(t, "uploader")
			if state == "" {
				u.Broken = errors.New("empty")
				u.Stat.Version = rapid.Int32Range(0, 1).Draw(t, "upload version")
			}
		})
		w.cloud[b.Uploads[len(b.Uploads)-1].Path()] = true
	}
}

// anyVerdicts has people say things of builds, some of which are gone.
func (w *world) anyVerdicts(t *rapid.T) {
	of := func() *zkmodel.BuildTree {
		if n := rapid.IntRange(0, len(w.Image.Builds)).Draw(t, "of"); n < len(w.Image.Builds) {
			return w.Image.Builds[n]
		}
		return &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "img", ID: "0000000077"}}
	}
	for range rapid.IntRange(0, 2).Draw(t, "verdicts") {
		w.judge(of(), rapid.SampledFrom([]string{"north", "south"}).Draw(t, "where"))
		w.Image.Verdicts.List[len(w.Image.Verdicts.List)-1].Delete = rapid.Bool().Draw(t, "delete")
	}
	if rapid.IntRange(0, 2).Draw(t, "pinned") == 0 {
		w.pin(of(), rapid.SampledFrom([]string{"north", "south", "elsewhere"}).Draw(t, "pinned where"))
	}
}

func (w *world) record(id string) *zkmodel.BuildTree {
	i := slices.IndexFunc(w.Image.Builds, func(b *zkmodel.BuildTree) bool { return b.ID == id })
	if i < 0 {
		return nil
	}
	return w.Image.Builds[i]
}

// fails reports whether the next thing that can fail does.
func (w *world) fails() bool {
	if w.failures > 0 {
		w.failures--
		return true
	}
	return false
}

// do does an action of a builder.
func (w *world) do(h Host, a Action) {
	w.as(h)
	w.change(h, a)
	w.disks[h.Name] = w.Local
}

func (w *world) change(h Host, a Action) {
	b := w.record(a.Build)
	switch a.Kind {
	case Build:
		state := zkmodel.BuildReady
		if w.fails() {
			state = zkmodel.BuildFailed
		}
		w.zxid += 10
		made := w.build(state, 0, func(b *zkmodel.Build) { b.Failures, b.Builder, b.BuilderID = a.Failures+1, h.Name, h.ID })
		made.ID = fmt.Sprintf("%010d", w.zxid) // never one that was there before
		w.Local[len(w.Local)-1].ID = made.ID
	case ClearRequest:
		w.Image.BuildRequested = nil
	case Upload:
		state := zkmodel.UploadReady
		if w.fails() {
			state = zkmodel.UploadFailed
		}
		w.upload(b, a.Provider, state, func(u *zkmodel.Upload) {
			u.ID, u.Failures = fmt.Sprintf("%010d", u.Stat.Czxid+100), a.Failures+1
		})
		if state == zkmodel.UploadReady {
			w.cloud[b.Uploads[len(b.Uploads)-1].Path()] = true
		}
	case DeleteUpload, ReclaimUpload:
		b.Uploads = slices.DeleteFunc(b.Uploads, func(u *zkmodel.Upload) bool {
			if u.Provider == a.Provider && u.ID == a.Upload {
				delete(w.cloud, u.Path())
				return true
			}
			return false
		})
	case MarkBuild:
		b.State, b.Broken = zkmodel.BuildDeleting, nil
	case DeleteBuild:
		w.Image.Builds = slices.DeleteFunc(w.Image.Builds, func(o *zkmodel.BuildTree) bool { return o == b })
	case RemoveFiles:
		w.Local = slices.DeleteFunc(w.Local, func(l LocalBuild) bool { return l.ID == a.Build })
	case RemoveFormat:
		for i := range w.Local {
			if w.Local[i].ID == a.Build {
				w.Local[i].Formats = slices.DeleteFunc(slices.Clone(w.Local[i].Formats), func(f string) bool { return f == a.Format })
			}
		}
	case ForgetVerdicts:
		if w.Image.Verdicts, _ = w.Image.Settled(); w.Image.Verdicts.Empty() {
			w.Image.Verdicts = nil
		}
	case MoveLog:
		b.Log = "http://me/" + a.Build
	case Adopt:
		for i := range w.Local {
			if w.Local[i].ID == a.Build {
				w.Local[i].Ours = true
			}
		}
	}
}
