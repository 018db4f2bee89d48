package builder

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// beside gives a site the image "other", which the provider "south" gets and no other
// provider. The function that it returns fails the test unless that image is built and
// uploaded, once, and is still there: what befalls one image must not touch another, and
// a test with one image cannot see that.
func (s *site) beside() (undisturbed func()) {
	s.t.Helper()
	s.addImage("other")
	s.addProvider("south", "qcow2", "other")
	folder := s.config.ImagesDir
	return func() {
		s.t.Helper()
		s.ready("other", 1, "south")
		build, upload := s.tree("other").Builds[0], s.uploads("other", "south", zkmodel.UploadReady)[0]
		if build.ID != "0000000001" || upload.ID != "0000000001" {
			s.t.Errorf("the other image is build %s, upload %s: it was made anew", build.ID, upload.ID)
		}
		if in := s.inCloud("south"); !slices.Equal(in, []string{upload.ExternalID.Text()}) {
			s.t.Errorf("the other image is %s; in its cloud are %v", upload.ExternalID.Text(), in)
		}
		if _, err := os.Stat(filepath.Join(folder, build.Name()+".qcow2")); err != nil {
			s.t.Error(err)
		}
	}
}

// imageFiles lists what is of the image "img" in images-dir.
func (s *site) imageFiles() []string {
	s.t.Helper()
	return slices.DeleteFunc(s.files(), func(f string) bool { return !strings.HasPrefix(f, "img-") })
}

// A provider that does not answer when images are deleted there holds up no deletion in
// another, however many it keeps busy. Catches: one lane of workers for the deletions in
// all providers.
func TestDeletionsInOneProviderHoldUpNoOther(t *testing.T) {
	s, images := sixImages(t)
	b := s.run(func(d *Deps) { d.BuildWorkers, d.UploadWorkers = 6, 6 })
	for _, image := range images {
		s.ready(image, 1, "bad", "worse", "good")
	}
	hangs := make(chan struct{}, 100)
	for _, provider := range []string{"bad", "worse"} {
		s.cloud(provider).SetHook(func(ctx context.Context, c fake.Call) error {
			if c.Op != fake.OpDeleteImage {
				return nil
			}
			hangs <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}
	next := copyOf(s.config)
	for i := range next.Providers {
		next.Providers[i].DiskImages = nil
	}
	if err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	s.eventually("the provider that answers is empty", func() bool { return len(s.inCloud("good")) == 0 })
	zktest.Await(t, hangs, "an upload hangs")
	for _, provider := range []string{"bad", "worse"} {
		if got := len(s.inCloud(provider)); got != len(images) {
			t.Errorf("%d images left in %s, which deletes none", got, provider)
		}
	}
}
