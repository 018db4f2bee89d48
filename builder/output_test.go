package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// What a command leaves is looked at before it is an image: it may be a link to
// a file of this host, or something that is never read to its end.
func TestOddOutputIsNoImage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret := filepath.Join(s.dir, "secret")
	if err := os.WriteFile(secret, []byte("QFI\xfb, and a secret of this host"), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := map[string]string{ // by image, which is called like the oddity: what the reason says
		"empty": "is empty", "text": "is not in the format qcow2", "link": "is a link", "fifo": "is no regular file",
		"folder": "is no regular file", "endless": "md5 is a link", "link-md5": "md5 is a link", "fifo-md5": "md5 is no regular file",
	}
	for name := range odd {
		image := s.addImage(name)
		image.EnvVars["FAKE_ODD"], image.EnvVars["FAKE_TARGET"] = name, secret
		image.BuildTimeout = 20 * time.Second // a fifo that is opened stays open until then
		s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, s.config.Providers[0].DiskImages[0])
		s.config.Providers[0].DiskImages[len(s.config.Providers[0].DiskImages)-1].Name = name
	}
	s.start(func(d *Deps) { d.BuildWorkers = 2 })
	s.ready("img", 1, "north")
	for name, says := range odd {
		var failed []*zkmodel.BuildTree
		s.eventually("a build of "+name+" has failed", func() bool {
			failed = s.builds(name, zkmodel.BuildFailed)
			return len(failed) > 0
		})
		if !strings.Contains(failed[0].Reason, says) {
			t.Errorf("%s: reason %q", name, failed[0].Reason)
		}
		if ready := s.builds(name, zkmodel.BuildReady); len(ready) > 0 {
			t.Errorf("%s: %d builds are ready", name, len(ready))
		}
	}
	if images := s.inCloud("north"); len(images) != 1 {
		t.Errorf("in the cloud: %v", images)
	}
}
