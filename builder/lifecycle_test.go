package builder

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

func TestMissingImageIsBuiltAndUploaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "raw", "img")
	s.start()
	s.ready("img", 1, "north", "south")

	b := s.builds("img", zkmodel.BuildReady)[0]
	id, err := os.ReadFile(filepath.Join(s.config.ImagesDir, "builder_id.txt"))
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).Match(id) {
		t.Errorf("builder id %q, %v", id, err)
	}
	if b.Builder != "host.example.org" || b.BuilderID != string(id) || !cmp.Equal(b.Formats, zkmodel.Formats{"qcow2", "raw"}) ||
		b.Username != "zuul" || b.PythonPath != "auto" || !regexp.MustCompile(`^\d{10}$`).MatchString(b.ID) {
		t.Errorf("record: %+v", b.Build)
	}
	text, err := os.ReadFile(filepath.Join(s.config.ImagesDir, b.Name()+".qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	if f := b.Files["qcow2"]; f.Size != int64(len(text)) || len(f.MD5) != 32 || len(f.SHA256) != 64 {
		t.Errorf("file in record: %+v", f)
	}
	log, err := os.ReadFile(filepath.Join(s.config.BuildLogDir, b.Name()+".log"))
	if err != nil || !strings.HasSuffix(string(log), "Exit code: 0\n") {
		t.Errorf("log %q, %v", log, err)
	}
	want := []string{".d", ".qcow2", ".qcow2.md5", ".qcow2.sha256", ".raw", ".raw.md5", ".raw.sha256"}
	for i := range want {
		want[i] = b.Name() + want[i]
	}
	if diff := cmp.Diff(want, s.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestUploadCarriesItsNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Providers[0].ImageNameFormat = "ci {image_name} {upload_id} {timestamp}"
	s.start()
	s.ready("img", 1, "north")
	u := s.uploads("img", "north", zkmodel.UploadReady)[0]
	images, err := s.cloud("north").ListImages(t.Context())
	if err != nil || len(images) != 1 {
		t.Fatalf("in the cloud: %v, %v", images, err)
	}
	if u.ExternalID.Text() != images[0].ExternalID || u.ExternalName != images[0].Name || u.Format != "qcow2" || u.Username != "zuul" {
		t.Errorf("record %+v, cloud %+v", u, images[0])
	}
	if !regexp.MustCompile(`^ci img ` + u.ID + ` \d{10}$`).MatchString(u.ExternalName) {
		t.Errorf("name %q", u.ExternalName)
	}
	want := map[string]string{
		"from": "image", "both": "provider", providers.MetaProvider: "north",
		providers.MetaBuild: u.Build, providers.MetaUpload: u.ID, providers.MetaImage: "img",
	}
	got := images[0].Metadata
	delete(got, providers.MetaSite) // a random one; see TestLeakedImagesGoAfterTwoLooks
	for key := range got {
		if _, ok := want[key]; !ok {
			delete(got, key) // the cloud's own
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestRequestIsServedAndTheNewestTwoStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.ready("img", 1, "north")
	first := s.builds("img", zkmodel.BuildReady)[0].ID
	for n := 2; n <= 4; n++ {
		if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
			t.Fatal(err)
		}
		s.eventually("the request is served", func() bool { return s.tree("img").BuildRequested == nil })
		s.ready("img", min(n, 2), "north")
	}
	builds := s.builds("img", zkmodel.BuildReady)
	if builds[0].ID <= first || builds[1].ID <= builds[0].ID {
		t.Errorf("builds %s, %s after %s", builds[0].ID, builds[1].ID, first)
	}
	s.eventually("files and cloud are clean", func() bool {
		old := func(name string) bool {
			return !strings.HasPrefix(name, builds[0].Name()) && !strings.HasPrefix(name, builds[1].Name())
		}
		return !slices.ContainsFunc(s.files(), old) && len(s.inCloud("north")) == 2
	})
}

func TestFailedBuildTellsWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	s.image().EnvVars["FAKE_FAIL"] = "7"
	s.start()
	s.eventually("a third failure in a row", func() bool {
		failed := s.builds("img", zkmodel.BuildFailed)
		return len(failed) == 1 && failed[0].Failures >= 3
	})
	b := s.builds("img", zkmodel.BuildFailed)[0]
	if b.ExitCode != 7 || b.Reason != "fake-image-create ended with exit code 7: E: something broke" || !strings.HasSuffix(b.Tail, "E: something broke") {
		t.Errorf("record %+v", b.Build)
	}
	if again := b.RetryAt.Time(); !again.After(b.StateTime.Time()) {
		t.Errorf("it failed at %s and is tried again at %s", b.StateTime.Time(), again)
	}
	s.eventually("no file is left", func() bool { return len(s.imageFiles()) == 0 })
	undisturbed()
}

func TestBadBuilds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *site)
		reason string
	}{
		"no command":     {func(s *site) { s.image().DIBCmd = "no-such-image-create" }, `cannot run dib-cmd "no-such-image-create": not found`},
		"bad quotes":     {func(s *site) { s.image().DIBCmd = "a 'b" }, "a quotation is not closed"},
		"wrong checksum": {func(s *site) { s.image().EnvVars["FAKE_SUM"] = "bad" }, "checksum mismatch"},
		"missing file":   {func(s *site) { s.image().EnvVars["FAKE_SKIP"] = "qcow2" }, "no such image file"},
		"timeout": {func(s *site) {
			s.image().EnvVars["FAKE_WAIT"] = filepath.Join(s.dir, "never")
			s.image().BuildTimeout = 300_000_000
		}, "build-timeout exceeded: 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c.change(s)
			s.start()
			s.eventually("the build failed", func() bool { return len(s.builds("img", zkmodel.BuildFailed)) > 0 })
			if got := s.builds("img", zkmodel.BuildFailed)[0].Reason; !strings.Contains(got, c.reason) {
				t.Errorf("reason %q", got)
			}
		})
	}
}

func TestChecksumsAreMadeWhereThereAreNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().EnvVars["FAKE_SUM"] = "none"
	s.start()
	s.ready("img", 1, "north")
	if f := s.builds("img", zkmodel.BuildReady)[0].Files["qcow2"]; len(f.SHA256) != 64 {
		t.Errorf("file %+v", f)
	}
}

func TestPauseByFlag(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.store.PauseImage(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.addImage("other").Formats = []string{"raw"}
	s.start()
	s.ready("other", 1)
	if n := len(s.tree("img").Builds); n != 0 {
		t.Errorf("%d builds of a paused image", n)
	}
	if err := s.store.UnpauseImage(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 1, "north")
}

func TestDeletedByAnOperator(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start()
	s.ready("img", 1, "north")
	if err := s.store.PauseImage(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	u := s.uploads("img", "north", zkmodel.UploadReady)[0]
	if err := s.store.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, u.UploadKey, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("another upload", func() bool {
		list := s.uploads("img", "north", zkmodel.UploadReady)
		return len(list) == 1 && list[0].ID != u.ID && len(s.inCloud("north")) == 1
	})
	b := s.builds("img", zkmodel.BuildReady)[0]
	if err := s.store.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "img", b.ID, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("nothing is left", func() bool {
		return len(s.tree("img").Builds) == 0 && len(s.inCloud("north")) == 0 && len(s.files()) == 0
	})
	stop()
}

func TestImageLeavesTheConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	lists := s.config.Providers[1].DiskImages
	s.config.Providers[1].DiskImages = append([]configs.ProviderImage{{Name: "img"}}, lists...)
	stop := s.start()
	s.ready("img", 1, "north", "south")
	s.ready("other", 1, "south")
	stop()
	s.config.DiskImages = s.config.DiskImages[1:]
	s.config.Providers[0].DiskImages, s.config.Providers[1].DiskImages = nil, lists
	s.start()
	s.eventually("nothing is left of it", func() bool {
		return len(s.tree("img").Builds) == 0 && len(s.inCloud("north")) == 0 && len(s.inCloud("south")) == 1 && len(s.imageFiles()) == 0
	})
	undisturbed()
}
