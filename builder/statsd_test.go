package builder

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/statsdtest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: a name or unit that is not Nodepool's; a failed build that is not told; a provider
// or image that is; a state of what goes on that is another's.
func TestStatsd(t *testing.T) {
	t.Parallel()
	server := statsdtest.Start(t)
	s := newSite(t)
	s.addImage("other")
	s.addProvider("south", "raw", "img", "other")
	b := s.run(func(d *Deps) { d.Statsd, d.FQDN = server.Client(t), "nb01.example.org" })
	s.ready("img", 1, "north", "south")
	s.ready("other", 1, "south")
	var lines []string
	timing := regexp.MustCompile(`:\d+\.000000\|ms$`)
	number := regexp.MustCompile(`:\d+\|g$`)
	zktest.Eventually(t, func() bool {
		lines = server.Lines()
		for i := range lines {
			lines[i] = number.ReplaceAllString(timing.ReplaceAllString(lines[i], ":TIME|ms"), ":NUMBER|g")
		}
		slices.Sort(lines)
		return len(lines) >= 15
	}, "builds and uploads are told")
	want := []string{
		"nodepool.dib_image_build.img.qcow2.size:NUMBER|g",
		"nodepool.dib_image_build.img.raw.size:NUMBER|g",
		"nodepool.dib_image_build.img.status.duration:TIME|ms",
		"nodepool.dib_image_build.img.status.last_build:NUMBER|g",
		"nodepool.dib_image_build.img.status.rc:NUMBER|g",
		"nodepool.dib_image_build.other.raw.size:NUMBER|g",
		"nodepool.dib_image_build.other.status.duration:TIME|ms",
		"nodepool.dib_image_build.other.status.last_build:NUMBER|g",
		"nodepool.dib_image_build.other.status.rc:NUMBER|g",
		"nodepool.image_update.img.north:1|c", "nodepool.image_update.img.north:TIME|ms",
		"nodepool.image_update.img.south:1|c", "nodepool.image_update.img.south:TIME|ms",
		"nodepool.image_update.other.south:1|c", "nodepool.image_update.other.south:TIME|ms",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}

	// What there is, every minute.
	told := len(server.Lines())
	st := b.metrics.stats
	st.builds("other", 1)
	st.uploads("img", "south", 1)
	st.tell(b.config.Load(), func(name string) *zkmodel.Image {
		return &zkmodel.Image{Name: name, BuildRequested: &recipe.Stat{}, Paused: false}
	})
	st.built(&zkmodel.Build{Image: "img", State: zkmodel.BuildFailed, Phases: map[string]float64{"command": 1.5}}, nil)
	want = []string{
		"nodepool.builder.nb01.example.org.image.img.build.state:0|g",
		"nodepool.builder.nb01.example.org.image.img.provider.north.upload.state:0|g",
		"nodepool.builder.nb01.example.org.image.img.provider.south.upload.state:2|g",
		"nodepool.image.img.image_build_requests:1|g",
		"nodepool.builder.nb01.example.org.image.other.build.state:1|g",
		"nodepool.builder.nb01.example.org.image.other.provider.south.upload.state:0|g",
		"nodepool.image.other.image_build_requests:0|g", // it is being built
		"nodepool.image_build_requests:1|g",
		"nodepool.dib_image_build.img.status.duration:1500.000000|ms",
		"nodepool.dib_image_build.img.status.rc:1|g",
	}
	zktest.Eventually(t, func() bool { return len(server.Lines()) > told+len(want) }, "what there is is told")
	if got := server.Lines()[told : told+len(want)]; !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
