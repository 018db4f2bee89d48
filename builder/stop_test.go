package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// waitingSite has an image whose build waits until goOn is called.
func waitingSite(t *testing.T) (s *site, goOn func()) {
	t.Helper()
	s = newSite(t)
	flag := filepath.Join(s.dir, "go")
	s.image().EnvVars["FAKE_WAIT"] = flag
	return s, func() {
		if err := os.WriteFile(flag, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// underWay waits until a build's command runs.
func (s *site) underWay() *zkmodel.Build {
	s.t.Helper()
	flag := s.image().EnvVars["FAKE_WAIT"] + ".waiting"
	s.eventually("the command runs", func() bool { _, err := os.Stat(flag); return err == nil })
	_ = os.Remove(flag)
	builds := s.builds("img", zkmodel.BuildBuilding)
	if len(builds) != 1 {
		s.t.Fatalf("%d builds under way", len(builds))
	}
	return builds[0].Build
}

// A builder that is stopped leaves no record, no file, no process, and the image to
// others. What it had built of another image stays.
func TestStopInABuild(t *testing.T) {
	s, goOn := waitingSite(t)
	undisturbed := s.beside()
	stop := s.start(func(d *Deps) { d.BuildWorkers = 2 })
	s.ready("other", 1, "south")
	first := s.underWay()
	before := time.Now()
	stop()
	if took := time.Since(before); took > 8*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if n := len(s.tree("img").Builds); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if left := s.imageFiles(); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	log, err := os.ReadFile(filepath.Join(s.config.BuildLogDir, first.Name()+".log"))
	if err != nil || !strings.Contains(string(log), "cleaning up") || !strings.HasSuffix(string(log), "Exit code: 143\n") {
		t.Errorf("log %q, %v", log, err)
	}
	goOn()
	s.config.ImagesDir += "2"
	s.start(func(d *Deps) { d.Client, d.Hostname, d.FQDN = s.dial(s.root), "second", "second.example.org" })
	s.ready("img", 1, "north")
	if b := s.builds("img", zkmodel.BuildReady)[0]; b.ID <= first.ID || b.Builder != "second.example.org" {
		t.Errorf("build id %s, of %s, after %s", b.ID, b.Builder, first.ID)
	}
	undisturbed()
}

// Neither a build that does not listen nor a cloud that does not answer keeps a
// builder from stopping within ten seconds.
func TestStopWhenNobodyListens(t *testing.T) {
	s, _ := waitingSite(t)
	s.addImage("other")
	s.addProvider("mute", "raw", "other")
	s.image().EnvVars["FAKE_DEAF"] = "1"
	answered := make(chan struct{})
	defer close(answered)
	asked := make(chan struct{}, 1)
	stop := s.start(func(d *Deps) {
		d.BuildWorkers = 2
		open := d.Open
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			if c.Name == "mute" {
				asked <- struct{}{}
				<-answered
			}
			return open(c)
		}
	})
	s.underWay()
	s.ready("other", 1)
	zktest.Await(t, asked, "the mute cloud is asked")
	before := time.Now()
	stop()
	if took := time.Since(before); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if n := len(s.tree("img").Builds); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// An upload ends with its builder and leaves nothing; the next start begins another. What
// was uploaded elsewhere, of this image and of others, stays.
func TestStopInAnUpload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	s.addProvider("west", "qcow2", "img")
	s.cloud("north").SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpUpload || c.Done {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	stop := s.start()
	s.ready("img", 1, "west")
	s.ready("other", 1, "south")
	s.eventually("the upload is under way", func() bool { return len(s.uploads("img", "north", zkmodel.UploadUploading)) == 1 })
	stop()
	if b := s.builds("img", zkmodel.BuildReady); len(b) != 1 || len(b[0].Uploads) != 1 || b[0].Uploads[0].Provider != "west" {
		t.Errorf("left: %+v", b)
	}
	if left := s.inCloud("north"); len(left) > 0 {
		t.Errorf("in the cloud: %v", left)
	}
	s.cloud("north").SetHook(nil)
	s.start()
	s.ready("img", 1, "north", "west")
	undisturbed()
}

// Whoever loses its lock must not go on; the files of a build that nobody knows
// of are of no use.
func TestLostLockEndsABuild(t *testing.T) {
	s, goOn := waitingSite(t)
	undisturbed := s.beside()
	s.start(func(d *Deps) { d.BuildWorkers = 2 })
	first := s.underWay()
	s.breakLock(zkmodel.BuildsLockPath("img"))
	s.eventually("the record of the lost build is gone", func() bool {
		return !slices.ContainsFunc(s.tree("img").Builds, func(b *zkmodel.BuildTree) bool { return b.ID == first.ID })
	})
	goOn()
	s.ready("img", 1, "north")
	s.eventually("its files are gone", func() bool {
		return !slices.ContainsFunc(s.files(), func(f string) bool { return strings.HasPrefix(f, first.Name()+".") })
	})
	undisturbed()
}

// breakLock removes the contenders of a lock, as an operator might.
func (s *site) breakLock(dir string) {
	s.t.Helper()
	session := s.store.Session()
	names, err := session.Children(s.t.Context(), dir)
	if err != nil || len(names) == 0 {
		s.t.Fatalf("contenders of %s: %v, %v", dir, names, err)
	}
	for _, name := range names {
		if err := session.Delete(s.t.Context(), dir+"/"+name, recipe.AnyVersion); err != nil && !errors.Is(err, recipe.ErrNoNode) {
			s.t.Fatal(err)
		}
	}
}

// A record that a dead builder left is not hidden by another build.
func TestStaleBuildBesideARunningOne(t *testing.T) {
	s, goOn := waitingSite(t)
	undisturbed := s.beside()
	lock, err := s.store.LockBuilds(t.Context(), "img")
	if err != nil {
		t.Fatal(err)
	}
	stale := &zkmodel.Build{Image: "img", Builder: "gone.example.org"}
	if err := s.store.CreateBuild(t.Context(), lock, stale); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start(func(d *Deps) { d.BuildWorkers = 2 })
	s.eventually("the stale record is gone while another build runs", func() bool {
		list := s.builds("img", zkmodel.BuildBuilding)
		return len(list) == 1 && list[0].ID != stale.ID
	})
	s.underWay()
	goOn()
	s.ready("img", 1, "north")
	undisturbed()
}

// Two builders with the same configuration build every image once.
func TestTwoBuilders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	calls := filepath.Join(s.dir, "calls")
	for _, name := range []string{"a", "b", "c", "d"} {
		s.addImage(name)
		s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, s.config.Providers[0].DiskImages[0])
		s.config.Providers[0].DiskImages[len(s.config.Providers[0].DiskImages)-1].Name = name
	}
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].EnvVars["FAKE_CALLS"] = calls
	}
	s.start()
	s.config.ImagesDir = filepath.Join(s.dir, "images2")
	s.start(func(d *Deps) { d.Client, d.Hostname, d.FQDN = s.dial(s.root), "second", "second.example.org" })
	for _, name := range []string{"img", "a", "b", "c", "d"} {
		s.ready(name, 1, "north")
	}
	text, err := os.ReadFile(calls)
	if n := strings.Count(string(text), "\n"); err != nil || n != 5 {
		t.Errorf("%d builds of 5 images, %v", n, err)
	}
}

func TestOneFolderHasOneBuilder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.ready("img", 1, "north")
	b, err := New(s.config, s.deps())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "in use by another builder") {
		t.Errorf("got %v", err)
	}
}

func TestComponentTellsTheTruth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start(func(d *Deps) { d.Version = "1.2.3" })
	s.ready("img", 1, "north")
	dir := zkmodel.ComponentsRoot + "/builder"
	members, err := recipe.Members(t.Context(), s.store.Session(), dir)
	if err != nil || len(members) != 1 {
		t.Fatalf("%v, %v", members, err)
	}
	want := `{"hostname": "host", "kind": "builder", "knows": ["verdicts"], "model_api": 0, "providers": ["north"], "state": "running", "version": "1.2.3"}`
	if got := string(members[0].Data); got != want || !strings.HasPrefix(members[0].Name, "host0") {
		t.Errorf("%s: %s", members[0].Name, got)
	}
	stop()
	s.eventually("the record is gone", func() bool {
		members, err := recipe.Members(t.Context(), s.store.Session(), dir)
		return err == nil && len(members) == 0
	})
}
