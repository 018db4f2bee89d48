package builder

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/test/lacks"
	"poolkeeper/test/script"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// copyOf is a configuration that a test may change while a builder has the other.
func copyOf(c *configs.Config) *configs.Config {
	next := *c
	next.DiskImages = slices.Clone(c.DiskImages)
	next.Providers = slices.Clone(c.Providers)
	return &next
}

// run runs a builder that the test keeps a hand on.
func (s *site) run(change ...func(*Deps)) *Builder {
	s.t.Helper()
	deps := s.deps()
	for _, c := range change {
		c(&deps)
	}
	b, err := New(copyOf(s.config), deps)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		if s.t.Failed() {
			s.t.Logf("log of the builder:\n%s", s.log)
		}
	})
	return b
}

// Who edits the configuration and asks for builds at once gets what the files say by then.
func TestEditIsSeenByTheNextBuild(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, configs.ProviderImage{Name: "other"})
	var edited atomic.Pointer[configs.Config]
	var b *Builder
	b = s.run(func(d *Deps) {
		d.Refresh = func(context.Context) {
			if next := edited.Swap(nil); next != nil {
				if err := b.Reload(next); err != nil {
					t.Error(err)
				}
			}
		}
	})
	s.ready("img", 1, "north")
	s.ready("other", 1, "north")
	for round, user := range []string{"ann", "bob"} {
		next := copyOf(s.config)
		for i := range next.DiskImages {
			next.DiskImages[i].Username = user
		}
		edited.Store(next)
		for _, image := range []string{"img", "other"} {
			if err := s.store.RequestBuild(t.Context(), image); err != nil {
				t.Fatal(err)
			}
		}
		for _, image := range []string{"img", "other"} {
			s.eventually("the request is served", func() bool { return s.tree(image).BuildRequested == nil })
			builds := s.builds(image, zkmodel.BuildReady)
			if last := builds[len(builds)-1]; last.Username != user {
				t.Errorf("round %d: build %s has the user %s of the old configuration, want %s", round, last.Name(), last.Username, user)
			}
		}
	}
}

// After a start with another port, or with none, the records tell where the logs are now.
func TestLogAddressesFollowThePort(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other").Formats = []string{"raw"}
	s.config.DiskImages[1].EnvVars = configs.EnvVars{"FAKE_FAIL": "1"}
	at := func(port string) func(*Deps) {
		return func(d *Deps) {
			d.LogURL = func(image, build string) string {
				if port == "" {
					return ""
				}
				return "http://host.example.org:" + port + "/log/" + image + "-" + build
			}
		}
	}
	stop := s.start(at("8006"))
	s.ready("img", 1, "north")
	s.eventually("a build has failed", func() bool { return len(s.builds("other", zkmodel.BuildFailed)) > 0 })
	if err := errors.Join(s.store.PauseImage(t.Context(), "img"), s.store.PauseImage(t.Context(), "other")); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"9006", "", "7006"} {
		stop()
		stop = s.start(at(port))
		s.eventually("all records have the address at port "+port, func() bool {
			for _, image := range []string{"img", "other"} {
				for _, b := range s.tree(image).Builds {
					want := "http://host.example.org:" + port + "/log/" + b.Name()
					if port == "" {
						want = ""
					}
					if b.Log != want {
						return false
					}
				}
			}
			return true
		})
	}
	if b := s.tree("img").Builds[0]; b.State != zkmodel.BuildReady || len(b.Files) == 0 {
		t.Errorf("the rest of the record: %+v", b.Build)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	closed := make(chan string, 10)
	b := s.run(func(d *Deps) {
		open := d.Open
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			p, err := open(c)
			return closing{p, func() { closed <- c.Name }}, err
		}
	})
	s.ready("img", 1, "north")

	s.config = copyOf(s.config)
	s.addProvider("south", "raw", "img")
	s.addImage("other").Formats = []string{"raw"}
	if err := b.Reload(copyOf(s.config)); err != nil {
		t.Fatal(err)
	}
	s.ready("other", 1)
	s.eventually("south has a build", func() bool { return len(s.uploads("img", "south", zkmodel.UploadReady)) == 1 })

	// Gone from the configuration, gone from everywhere but the cloud that we
	// have no access to any more.
	next := copyOf(s.config)
	next.DiskImages = next.DiskImages[1:]
	next.Providers = next.Providers[:1]
	next.Providers[0].DiskImages = nil
	if err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	var names []string
	for range 2 {
		select {
		case name := <-closed:
			names = append(names, name)
		case <-time.After(20 * time.Second):
			t.Fatalf("closed are only %v", names)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"north", "south"}) {
		t.Errorf("closed are %v", names)
	}
	s.eventually("north is empty", func() bool { return len(s.inCloud("north")) == 0 })
	s.ready("other", 1)

	// And back again.
	if err := b.Reload(copyOf(s.config)); err != nil {
		t.Fatal(err)
	}
	s.eventually("north has the image again", func() bool { return len(s.uploads("img", "north", zkmodel.UploadReady)) > 0 })

	moved := copyOf(s.config)
	moved.ImagesDir += "2"
	if err := b.Reload(moved); err == nil || !strings.Contains(err.Error(), "images-dir has changed") {
		t.Errorf("got %v", err)
	}
}

// closing tells when a provider is closed.
type closing struct {
	providers.Provider
	closed func()
}

func (c closing) Close() error { c.closed(); return nil }

func TestCancel(t *testing.T) {
	s, _ := waitingSite(t)
	undisturbed := s.beside()
	s.request()
	s.start(func(d *Deps) {
		d.BuildWorkers, d.Policy.BuildRetry.First, d.Policy.BuildRetry.Max = 2, time.Hour, time.Hour
	})
	b := s.underWay()
	if id, err := s.store.CancelBuild(t.Context(), "img"); err != nil || id != b.ID {
		t.Fatalf("cancelled %s, %v", id, err)
	}
	s.eventually("the build is cancelled and nobody waits", func() bool {
		failed := s.builds("img", zkmodel.BuildFailed)
		return len(failed) == 1 && strings.Contains(failed[0].Reason, "cancelled by an operator") &&
			s.tree("img").BuildRequested == nil && len(s.imageFiles()) == 0
	})
	if _, ok, err := s.store.Session().Exists(t.Context(), zkmodel.CancelPath("img")); ok || err != nil {
		t.Errorf("the request to cancel is left: %t, %v", ok, err)
	}
	undisturbed()
}

// One place for all builders: two of them build one image after the other.
func TestFleetLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other").Formats = []string{"raw"}
	s.config.MaxConcurrentBuilds, s.config.MaxConcurrentUploads = 1, 1
	flag := filepath.Join(s.dir, "go")
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].EnvVars["FAKE_WAIT"] = flag
	}
	inLine := func(n int) {
		s.eventually(strconv.Itoa(n)+" stand in line", func() bool {
			claims, err := recipe.Members(t.Context(), s.store.Session(), zkmodel.BuildLimitPath)
			return err == nil && len(claims) == n
		})
	}
	s.start(func(d *Deps) { d.BuildWorkers = 2 })
	inLine(2)
	s.config.ImagesDir += "2"
	s.start(func(d *Deps) { d.Client, d.Hostname, d.FQDN = s.dial(s.root), "second", "second" })
	inLine(3)
	// People are shown who builds what, and who waits for that: with one of them stuck, all are.
	places, err := s.store.Places(t.Context(), map[string]int{zkmodel.BuildLimitPath: 1})
	places = slices.DeleteFunc(places, func(p zkmodel.Place) bool { return strings.HasPrefix(p.Share, "builder-ids/") })
	if err != nil || len(places) != 3 {
		t.Fatalf("places: %+v, %v", places, err)
	}
	for i, p := range places {
		if p.Waits != (i > 0) || p.Share != "limits/builds" || p.Since.IsZero() || p.Reason != "builds img" && p.Reason != "builds other" || (p.Host == "second") != (i == 2) {
			t.Errorf("place %d: %+v", i, p)
		}
	}
	if n := len(s.builds("img", zkmodel.BuildBuilding)) + len(s.builds("other", zkmodel.BuildBuilding)); n > 1 {
		t.Errorf("%d builds at once", n)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 1, "north")
	s.ready("other", 1)
}

func TestLeakedImagesGoAfterTwoLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	b := s.run(func(d *Deps) { d.LeakAge = 100 * time.Millisecond })
	s.ready("img", 1, "north")
	s.ready("other", 1, "south")
	elsewhere := s.leak("south", "0000000091")
	mine := s.uploads("img", "north", zkmodel.UploadReady)[0]
	images, err := s.cloud("north").ListImages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta := images[0].Metadata
	leak := func(change map[string]string) string {
		m := maps.Clone(meta)
		maps.Copy(m, change)
		file := b.images.File(disk.Name{Image: "img", ID: mine.Build}, "qcow2")
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.cloud("north").UploadImage(t.Context(), providers.ImageUpload{
			Name: "leak", Path: file, Format: "qcow2", Size: info.Size(), Metadata: m, Verified: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	leaks := []string{
		leak(map[string]string{providers.MetaUpload: "0000000099"}),
		leak(map[string]string{providers.MetaImage: "never-heard-of"}),
	}
	others := []string{
		mine.ExternalID.Text(),
		leak(map[string]string{providers.MetaSite: "another installation"}),
		leak(map[string]string{providers.MetaImage: "", providers.MetaSite: "", providers.MetaUpload: "0000000098"}), // Nodepool's
	}
	s.eventually("the leaks are gone", func() bool {
		left := s.inCloud("north")
		return !slices.Contains(left, leaks[0]) && !slices.Contains(left, leaks[1])
	})
	for _, id := range others {
		if !slices.Contains(s.inCloud("north"), id) {
			t.Errorf("%s is gone", id)
		}
	}
	s.eventually("the leak in the other cloud is gone", func() bool { return !slices.Contains(s.inCloud("south"), elsewhere) })
	undisturbed()
}

func TestLogsAreToldAndFound(t *testing.T) {
	s, goOn := waitingSite(t)
	logs := &heard{}
	s.start(func(d *Deps) {
		d.Logs = logs
		d.LogURL = func(image, build string) string { return "http://host:8005/log/" + image + "-" + build }
	})
	b := s.underWay()
	s.eventually("the record says where the log is", func() bool {
		return s.builds("img", zkmodel.BuildBuilding)[0].Log == "http://host:8005/log/"+b.Name()
	})
	s.eventually("it grows", func() bool { grew, over := logs.get(); return grew > 0 && !over })
	goOn()
	s.ready("img", 1, "north")
	if _, over := logs.get(); !over {
		t.Error("nobody was told of the end")
	}
}

// heard notes what it is told of logs.
type heard struct {
	mu   sync.Mutex
	grew int
	over bool
}

func (h *heard) Writing(string, string) (grew, done func()) {
	return func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.grew++
		}, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.over = true
		}
}

func (h *heard) get() (grew int, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.grew, h.over
}

// A build that fills its disk says so, and leaves the space free.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		lacks.Skip(t, "mounting a small disk needs root")
	}
	s := newSite(t)
	s.config.ImagesDir = filepath.Join(s.dir, "small")
	if err := os.Mkdir(s.config.ImagesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", s.config.ImagesDir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	stop := func() {}
	t.Cleanup(func() {
		stop()
		if err := syscall.Unmount(s.config.ImagesDir, 0); err != nil {
			t.Error(err)
		}
	})
	s.image().DIBCmd = quoted(script.Write(t, "script", `while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
dd if=/dev/zero of="$out.qcow2" bs=64k`))
	stop = s.start()
	s.eventually("the build failed for lack of space", func() bool {
		failed := s.builds("img", zkmodel.BuildFailed)
		return len(failed) > 0 && strings.Contains(failed[0].Reason, "the disk is full ("+s.config.ImagesDir)
	})
	s.eventually("its files are gone", func() bool { return len(s.files()) == 0 })
}
