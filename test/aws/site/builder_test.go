package site_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/test/aws/endpoint"
	"poolkeeper/test/zktest"
)

// imageCreate stands in for disk-image-create.
const imageCreate = `#!/bin/sh
set -eu
while [ $# -gt 0 ]; do
    case "$1" in
    -o) out=$2; shift ;;
    esac
    shift
done
head -c 2500000 /dev/urandom >"$out.raw"
for sum in md5 sha256; do ${sum}sum "$out.raw" >"$out.raw.$sum"; done
`

// imageConfig is added to siteConfig's: the bucket, the image, the import-method, the site's folder.
const imageConfig = `  object-storage: {bucket-name: %s}
  diskimages: [{name: %s, import-method: %s}]
images-dir: %[4]s/images
build-log-dir: %[4]s/logs
diskimages: [{name: %[2]s, dib-cmd: %[4]s/image-create, elements: [vm]}]
`

// uploads has the site's provider take an image, by a method.
func (s *site) uploads(image, method string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "image-create"), []byte(imageCreate), 0o700); err != nil {
		s.t.Fatal(err)
	}
	all := s.config + fmt.Sprintf(imageConfig, s.amazon.Bucket, image, method, s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "nodepool.yaml"), []byte(all), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// driver is a provider in this process, of the site's configuration.
func (s *site) driver(t *testing.T) *aws.Provider {
	t.Helper()
	cfg, err := configs.Load(filepath.Join(s.dir, "nodepool.yaml"), configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := aws.New(cfg.Providers[0], aws.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// days is a clock that is so many days ahead.
type days int

func (d days) Now() time.Time { return time.Now().AddDate(0, 0, int(d)) }

func (d days) AfterFunc(after time.Duration, f func()) clock.Stopper { return time.AfterFunc(after, f) }

// searched has the searches for leaks be by: the builders' for images, and the launchers' for the rest.
func (s *site) searched(t *testing.T, kept endpoint.Thing) {
	t.Helper()
	p := s.driver(t)
	list, err := p.ListImages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.ExternalID != kept.ID && providers.OfSite(i.Metadata, "amazon", kept.Tags[providers.MetaSite]) {
			if err := p.DeleteImage(t.Context(), i.ExternalID); err != nil {
				t.Error(err)
			}
		}
	}
	for _, ahead := range []days{0, 9} {
		if _, err := p.CleanLeaks(clock.With(t.Context(), clock.From(ahead)), kept.Tags[providers.MetaSite]); err != nil {
			t.Error(err)
		}
	}
}

// A builder is killed at each thing that Amazon has of an upload, also between what an import makes and its tags: the next one
// uploads, and when the searches for leaks have been by there is one image, of one snapshot, and nothing else.
func TestBuilderKilled(t *testing.T) {
	s := newSite(t)
	e := s.amazon
	e.Env(t)
	for n, step := range []struct {
		name, method string
		asked        string
		untagged     bool // no tags can be given before the builder is killed
	}{
		{"an import of a snapshot is asked for", configs.AWSImportSnapshot, "ImportSnapshot", false},
		{"a snapshot is imported, and has no tags", configs.AWSImportSnapshot, "CreateTags", true},
		{"an image is registered", configs.AWSImportSnapshot, "RegisterImage", false},
		{"an import of an image is asked for", configs.AWSImportImage, "ImportImage", false},
		{"an image is imported, and has no tags", configs.AWSImportImage, "CreateTags", true},
		{"a snapshot is begun", configs.AWSImportEBSDirect, "StartSnapshot", false},
		{"blocks are sent", configs.AWSImportEBSDirect, "PutSnapshotBlock", false},
		{"a snapshot is complete", configs.AWSImportEBSDirect, "CompleteSnapshot", false},
	} {
		t.Run(step.name, func(t *testing.T) {
			image := fmt.Sprintf("tiny-%d", n)
			s.uploads(image, step.method)
			if step.untagged {
				e.Fail("CreateTags", 1, "InternalError")
			}
			asked := e.Count(step.asked)
			release := e.HoldAnswer(step.asked)
			victim := s.daemon("builder")
			zktest.Eventually(t, func() bool { return e.Count(step.asked) > asked }, "%s", step.name)
			s.kill(victim)
			release()
			next := s.daemon("builder")
			var kept endpoint.Thing
			zktest.Eventually(t, func() bool {
				for _, kept = range e.Images() {
					if kept.Tags[providers.MetaImage] == image && kept.Tags[providers.MetaUpload] > "0000000001" {
						return true
					}
				}
				return false
			}, "the next builder uploads")
			zktest.Eventually(t, func() bool {
				return len(e.Objects(e.Bucket)) == 0 || step.method == configs.AWSImportEBSDirect || e.Count("DeleteObject") > n
			}, "it is at its end")
			zktest.Eventually(t, func() bool {
				s.searched(t, kept)
				return len(e.Images()) == 1 && len(e.Snapshots()) == 1 && len(e.Objects(e.Bucket)) == 0
			}, "what the first one left goes")
			if !e.Exists(kept.ID) {
				t.Error("the image is gone, too")
			}
			s.kill(next)
		})
	}
}
