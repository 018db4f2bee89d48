package builder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/local"
	"poolkeeper/test/bench"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// instant is a dib-cmd that takes no time: what remains is ours.
const instant = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf 'QFI\373 image' >"$out.qcow2"
`

// fleet makes a site with many images, each at many providers.
func fleet(b *testing.B, images, clouds int) *site {
	b.Helper()
	s := newSite(b)
	tool := filepath.Join(s.dir, "instant")
	if err := os.WriteFile(tool, []byte(instant), 0o755); err != nil {
		b.Fatal(err)
	}
	s.config.DiskImages, s.config.Providers = nil, nil
	names := make([]string, images)
	for i := range names {
		names[i] = fmt.Sprintf("image-%03d", i)
		s.addImage(names[i]).DIBCmd = quoted(tool)
	}
	for i := range clouds {
		s.addProvider(fmt.Sprintf("cloud-%d", i), "qcow2", names...)
	}
	return s
}

// quiet are the dependencies of a builder that is measured.
func quiet(d *Deps) { d.Logger = hclog.NewNullLogger() }

// mirrorOf follows the tree of a site, as a bystander.
func mirrorOf(b *testing.B, s *site) *zkmodel.Mirror {
	b.Helper()
	m := zkmodel.NewMirror(s.dial(s.root), zkmodel.PartImages, nil)
	ctx := b.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx) // ends with ctx
	}()
	b.Cleanup(func() { <-done })
	if err := m.WaitSynced(ctx); err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkRequestToRecord is the time from image-build to the record of the
// build, as a bystander sees it. The peer takes 5.1 s.
func BenchmarkRequestToRecord(b *testing.B) {
	s := fleet(b, 1, 1)
	m := mirrorOf(b, s)
	s.start(quiet)
	s.ready("image-000", 1, "cloud-0")
	changes := m.SubscribeImages()
	defer changes.Close()
	var times []time.Duration
	for b.Loop() {
		s.eventually("rest", func() bool { return s.tree("image-000").BuildRequested == nil && s.atRest("image-000") })
		known := newestBuild(m)
		before := time.Now()
		if err := s.store.RequestBuild(b.Context(), "image-000"); err != nil {
			b.Fatal(err)
		}
		for newestBuild(m) == known {
			<-changes.C()
			changes.Take()
		}
		times = append(times, time.Since(before))
	}
	report(b, times)
}

func newestBuild(m *zkmodel.Mirror) string {
	builds := m.Image("image-000").Builds
	return builds[len(builds)-1].ID
}

// atRest reports whether all of an image is ready.
func (s *site) atRest(image string) bool {
	for _, b := range s.tree(image).Builds {
		if b.State != zkmodel.BuildReady || len(b.Uploads) != 1 || b.Uploads[0].State != zkmodel.UploadReady {
			return false
		}
	}
	return true
}

// report prints the median and the worst of some times, in milliseconds.
func report(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(times[len(times)/2]), "p50-ms")
	b.ReportMetric(ms(times[len(times)-1]), "max-ms")
}

// BenchmarkColdStart is the time from nothing to everything built and uploaded.
// The peer takes 246 s for 20×5, and about 1,290 s for 100×5.
func BenchmarkColdStart(b *testing.B) {
	for _, images := range []int{20, 100} {
		b.Run(fmt.Sprintf("%dx5", images), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := fleet(b, images, 5)
				m := mirrorOf(b, s)
				changes := m.SubscribeImages()
				b.StartTimer()
				stop := s.start(quiet)
				for readyUploads(m) < images*5 {
					<-changes.C()
					changes.Take()
				}
				b.StopTimer()
				changes.Close()
				stop()
				b.StartTimer()
			}
		})
	}
}

func readyUploads(m *zkmodel.Mirror) int {
	n := 0
	for _, i := range m.Images() {
		for _, build := range i.Builds {
			for _, u := range build.Uploads {
				if u.State == zkmodel.UploadReady {
					n++
				}
			}
		}
	}
	return n
}

// BenchmarkRest is what a builder with 20 images at 5 providers needs when
// nothing happens: memory, and requests to ZooKeeper beside pings. The peer
// has 102 MiB and 181 requests a second.
func BenchmarkRest(b *testing.B) {
	server := zktest.Start(b)
	s, c := newSiteOf(b)
	c.Server, c.Chroot, c.Images, c.Clouds = server.Addr(), "", 20, 5
	client, err := recipe.Dial(recipe.Config{Servers: []string{c.Server}, Timeout: time.Minute}) // hardly pings
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	session, err := client.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s.store = zkmodel.NewStore(session, nil)
	p := c.spawn(b)
	s.eventually("everything is ready", func() bool {
		images, err := s.store.Images(b.Context())
		if err != nil || len(images) != 20 {
			return false
		}
		for _, i := range images {
			if len(i.Builds) == 0 || len(i.Builds[0].Uploads) != 5 {
				return false
			}
		}
		return true
	})
	<-time.After(2 * time.Second) // what is left to do
	for b.Loop() {
		before := server.Requests(b)
		<-time.After(5 * time.Second)
		b.ReportMetric(float64(server.Requests(b)-before)/5, "requests/s")
		b.ReportMetric(bench.Resident(b, p.cmd.Process.Pid), "MiB")
	}
}

// bigImage is the size of the image of BenchmarkUploadBig, in bytes.
const bigImage = 2 << 30

// BenchmarkUploadBig sends a large image to four local providers at once, and
// compares with four cp that run at once.
func BenchmarkUploadBig(b *testing.B) {
	s := newSite(b)
	tool := filepath.Join(s.dir, "big")
	body := fmt.Sprintf(`#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
head -c %d /dev/urandom >"$out.raw"
`, bigImage)
	if err := os.WriteFile(tool, []byte(body), 0o755); err != nil {
		b.Fatal(err)
	}
	s.image().DIBCmd = quoted(tool)
	s.image().BuildTimeout = 20 * time.Minute // a busy machine takes more than one for so many random bytes
	s.config.Providers = nil
	var names []string
	for i := range 4 {
		name := fmt.Sprintf("local-%d", i)
		names = append(names, name)
		s.addProvider(name, "raw", "img")
		p := &s.config.Providers[i]
		p.Driver = configs.DriverLocal
		p.Settings = &configs.LocalDriver{Dir: filepath.Join(s.dir, name), Accel: "tcg", MaxGuests: 1, Memory: 512, Cores: 1}
	}
	for b.Loop() {
		m := mirrorOf(b, s)
		changes := m.SubscribeImages()
		stop := s.start(quiet, func(d *Deps) {
			d.Open = func(c configs.Provider) (providers.Provider, error) {
				return local.New(c, local.Options{Logger: hclog.NewNullLogger()})
			}
		})
		for len(s.builds("img", zkmodel.BuildReady)) == 0 {
			<-changes.C()
			changes.Take()
			if failed := s.builds("img", zkmodel.BuildFailed); len(failed) > 0 {
				b.Fatal(failed[0].Reason)
			}
		}
		began := time.Now()
		for readyUploads(m) < len(names) {
			<-changes.C()
			changes.Take()
			if failed := s.uploads("img", names[0], zkmodel.UploadFailed); len(failed) > 0 {
				b.Fatal(failed[0].Reason)
			}
		}
		ours := time.Since(began)
		changes.Close()
		build := s.builds("img", zkmodel.BuildReady)[0]
		stop()
		theirs := copies(b, filepath.Join(s.config.ImagesDir, build.Name()+".raw"), filepath.Join(s.dir, "cp"), len(names))
		b.ReportMetric(4*bigImage/ours.Seconds()/1e6, "MB/s")
		b.ReportMetric(4*bigImage/theirs.Seconds()/1e6, "cp-MB/s")
		b.ReportMetric(bigImage/build.Phases["verify"]/1e6, "hash-MB/s")
		b.ReportMetric(build.Phases["command"], "command-s")
	}
}

// copies is how long cp takes for some copies at once.
func copies(b *testing.B, file, to string, n int) time.Duration {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if out, err := exec.CommandContext(b.Context(), "cp", "--reflink=never", file, fmt.Sprintf("%s-%d", to, i)).CombinedOutput(); err != nil {
				b.Errorf("cp: %v: %s", err, out)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
