package builder

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// A builder whose clock is days off writes true times, rebuilds nothing as too old and
// deletes nothing by age, and says so; beside it one whose clock is right does.
func TestBuilderWithWrongClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"early": 48 * time.Hour, "late": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.addImage("other").Formats = []string{"raw"}
			wrong := s.run(func(d *Deps) {
				d.LeakAge = 100 * time.Millisecond
				d.Now = func() time.Time { return time.Now().Add(off) }
			})
			s.ready("img", 1, "north")
			s.ready("other", 1)
			first := s.builds("img", zkmodel.BuildReady)[0]
			upload := s.uploads("img", "north", zkmodel.UploadReady)[0]
			for what, told := range map[string]zkmodel.Epoch{"build": first.StateTime, "upload": upload.StateTime} {
				if age := time.Since(told.Time()); age.Abs() > time.Minute {
					t.Errorf("the record of the %s says %s ago", what, age)
				}
			}
			images, err := s.cloud("north").ListImages(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			meta := images[0].Metadata
			meta[providers.MetaUpload] = "0000000099"
			file := wrong.images.File(disk.Name{Image: "img", ID: first.ID}, "qcow2")
			leak, err := s.cloud("north").UploadImage(t.Context(), providers.ImageUpload{
				Name: "leak", Path: file, Format: "qcow2", Size: first.Files["qcow2"].Size, Metadata: meta, Verified: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			there := func() bool { return strings.Contains(strings.Join(s.inCloud("north"), " "), leak) }
			s.eventually("it finds the leak", func() bool { return strings.Contains(s.findings("north"), leak) || !there() })
			<-time.After(500 * time.Millisecond) // five times its age
			if !there() {
				t.Error("a builder whose clock is wrong deleted a leaked image for its age")
			}
			s.mu.Lock()
			told := strings.Contains(s.log.String(), "Clock of this host is wrong")
			s.mu.Unlock()
			if !told {
				t.Error("it does not say that its clock is wrong")
			}
			s.config = copyOf(s.config)
			s.config.ImagesDir += " of another"
			s.start(func(d *Deps) {
				d.LeakAge, d.Client, d.Hostname, d.FQDN = 100*time.Millisecond, s.dial(s.root), "right", "right.example.org"
			})
			s.eventually("a builder with the right time deletes the leak", func() bool { return !there() })
			for _, image := range []string{"img", "other"} {
				if n := len(s.tree(image).Builds); n != 1 {
					t.Errorf("%d builds of %s, want one: nothing is too old", n, image)
				}
			}
		})
	}
}
