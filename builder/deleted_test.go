package builder

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// hangUploads lets uploads to a provider begin and never end by themselves.
func (s *site) hangUploads(provider string) {
	s.cloud(provider).SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpUpload || c.Done {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// A build that is deleted while it is uploaded has its uploads ended at once.
// Catches: the file goes, and uploads of it go on for hours.
func TestDeletedBuildEndsItsUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"south", "west"} {
		s.addProvider(name, "qcow2", "img")
		s.hangUploads(name)
	}
	s.start()
	s.ready("img", 1, "north")
	hanging := func() int {
		return len(s.uploads("img", "south", zkmodel.UploadUploading)) + len(s.uploads("img", "west", zkmodel.UploadUploading))
	}
	s.eventually("two uploads are under way", func() bool { return hanging() == 2 })
	build := s.builds("img", zkmodel.BuildReady)[0]
	if err := s.store.PauseImage(t.Context(), "img"); err != nil { // so that no other takes its place
		t.Fatal(err)
	}
	if err := s.store.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "img", build.ID, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("the build is gone, and all of it", func() bool {
		return len(s.tree("img").Builds) == 0 && len(s.files()) == 0 && len(s.inCloud("north")) == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if log := s.log.String(); strings.Contains(log, "Action failed, retrying: action=upload") || !strings.Contains(log, "the build is being deleted") {
		t.Error("the log does not say that the uploads ended because the build is deleted")
	}
}

// A record that an operator has marked by hand, in the words of the first
// specification, is deleted like any other.
func TestDeleteByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other").Formats = []string{"qcow2"}
	s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, s.config.Providers[0].DiskImages[0])
	s.config.Providers[0].DiskImages[1].Name = "other"
	s.start()
	s.ready("img", 1, "north")
	s.ready("other", 1, "north")
	rewrite := func(path string) {
		t.Helper()
		session := s.store.Session()
		data, stat, err := session.Get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(strings.ReplaceAll(string(data), `"state": "`, `"state":"`), `"state":"ready"`, `"state":"delete"`, 1)
		if text == string(data) {
			t.Fatalf("no state in %s", data)
		}
		if _, err := session.Set(t.Context(), path, []byte(text), stat.Version); err != nil {
			t.Fatal(err)
		}
	}
	first, upload := s.builds("img", zkmodel.BuildReady)[0], s.uploads("other", "north", zkmodel.UploadReady)[0]
	rewrite(first.Path())
	rewrite(upload.Path())
	s.eventually("the build is gone, and another there", func() bool {
		now := s.builds("img", zkmodel.BuildReady)
		return len(now) == 1 && now[0].ID > first.ID && len(s.uploads("img", "north", zkmodel.UploadReady)) == 1
	})
	s.eventually("the upload is gone, and another there", func() bool {
		now := s.uploads("other", "north", zkmodel.UploadReady)
		return len(now) == 1 && now[0].ExternalID.Text() != upload.ExternalID.Text()
	})
}

// The record names the files, as the first specification has it; images and logs
// are for their owner and group.
func TestNameAndModesOfFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "raw", "img")
	s.start()
	s.ready("img", 1, "north", "south")
	build := s.builds("img", zkmodel.BuildReady)[0]
	if build.Filename != "img-"+build.ID {
		t.Errorf("filename %q, want img-%s", build.Filename, build.ID)
	}
	for _, file := range []string{
		filepath.Join(s.config.ImagesDir, build.Filename+".qcow2"), filepath.Join(s.config.ImagesDir, build.Filename+".raw"),
		filepath.Join(s.config.BuildLogDir, build.Filename+".log"),
	} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if others := info.Mode().Perm() & 0o007; others != 0 {
			t.Errorf("%s has mode %o: everybody may read it", file, info.Mode().Perm())
		}
	}
}

// Records of running work that a foreign client marks or removes end the work first.
// Catches: the record disappears while diskimage-builder or a transfer runs on for hours.
func TestMarkedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"delete", "deleting", "removed"} {
		t.Run("build "+mark, func(t *testing.T) {
			t.Parallel()
			s, _ := waitingSite(t)
			undisturbed := s.beside()
			trace := filepath.Join(s.dir, "trace")
			s.image().EnvVars["FAKE_TRACE"] = trace
			s.request()
			s.start(func(d *Deps) { d.BuildWorkers = 2 })
			b := s.underWay()
			if err := s.store.PauseImage(t.Context(), "img"); err != nil { // so that no other takes its place
				t.Fatal(err)
			}
			dir := s.config.ImagesDir
			s.config.ImagesDir += "2"
			s.start(func(d *Deps) { d.Client, d.Hostname, d.FQDN = s.dial(s.root), "second", "second.example.org" })
			s.config.ImagesDir = dir
			s.eventually("two builders are registered", func() bool {
				names, err := s.store.Session().Children(t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder)
				return err == nil && len(names) == 2
			})
			s.markByHand(b.Path(), mark)
			s.eventually("the record is gone", func() bool { return len(s.tree("img").Builds) == 0 })
			ended := func() bool {
				text, err := os.ReadFile(trace)
				return err == nil && strings.HasSuffix(string(text), "end\n")
			}
			if mark != "removed" && !ended() {
				t.Error("the record disappeared while the command was running")
			}
			s.eventually("the command has ended, and left nothing", func() bool {
				return ended() && len(s.imageFiles()) == 0 && !s.tree("img").BuildsLocked && s.tree("img").BuildRequested == nil
			})
			undisturbed()
		})
		t.Run("upload "+mark, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.addProvider("south", "qcow2", "img")
			s.hangUploads("south")
			s.start()
			s.ready("img", 1, "north")
			var first *zkmodel.Upload
			s.eventually("the upload is in progress", func() bool {
				now := s.uploads("img", "south", zkmodel.UploadUploading)
				if len(now) == 1 {
					first = now[0]
				}
				return first != nil
			})
			s.markByHand(first.Path(), mark)
			s.eventually("another upload has begun", func() bool {
				now := s.uploads("img", "south", zkmodel.UploadUploading)
				return len(now) == 1 && now[0].ID > first.ID
			})
			if n := len(s.inCloud("south")); n > 0 {
				t.Errorf("%d images are left in the cloud", n)
			}
		})
	}
}

// markByHand removes a record, or writes a state into it, without any lock.
func (s *site) markByHand(path, mark string) {
	s.t.Helper()
	session := s.store.Session()
	if mark == "removed" {
		if err := session.DeleteTree(s.t.Context(), path); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	data, stat, err := session.Get(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	record := map[string]any{}
	if err := json.Unmarshal(data, &record); err != nil {
		s.t.Fatal(err)
	}
	record["state"] = mark
	if data, err = json.Marshal(record); err != nil {
		s.t.Fatal(err)
	}
	if _, err := session.Set(s.t.Context(), path, data, stat.Version); err != nil {
		s.t.Fatal(err)
	}
}

// A Nodepool builder removes a record with all below it while this builder deletes the image: the
// lost lock of a record that is gone is no warning. Catches: a warning for work that is done.
func TestRecordThatBothRemove(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.start()
	s.ready("img", 1, "north", "south")
	first := s.uploads("img", "north", zkmodel.UploadReady)[0]
	removed := make(chan error, 1)
	s.cloud("north").SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpDeleteImage && c.Done {
			select {
			case removed <- s.store.Session().DeleteTree(context.WithoutCancel(ctx), first.Path()):
			default:
			}
		}
		return nil
	})
	s.markByHand(first.Path(), "deleting")
	if err := zktest.Await(t, removed, "the record is removed by the other builder"); err != nil {
		t.Fatal(err)
	}
	s.eventually("another upload is ready", func() bool {
		now := s.uploads("img", "north", zkmodel.UploadReady)
		return len(now) == 1 && now[0].ID > first.ID && len(s.inCloud("north")) == 1
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if log := s.log.String(); strings.Contains(log, "lock lost") && strings.Contains(log, "[WARN]") {
		t.Error("a record that both removed is a warning")
	}
}
