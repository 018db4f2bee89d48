package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
)

// An image that fails again and again does not delay the others, also with one
// build worker.
func TestFailingImageBesideHealthyOnes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().EnvVars["FAKE_FAIL"] = "1"
	for _, name := range []string{"a", "b", "c"} {
		s.addImage(name).Formats = []string{"raw"}
	}
	s.start(func(d *Deps) { d.Policy.BuildRetry = plan.Backoff{First: time.Millisecond, Max: time.Millisecond} })
	for _, name := range []string{"a", "b", "c"} {
		s.ready(name, 1)
	}
	for n := 2; n <= 3; n++ {
		if err := s.store.RequestBuild(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		s.eventually("the healthy image is built on request", func() bool { return s.tree("b").BuildRequested == nil })
	}
	if b := s.builds("img", zkmodel.BuildFailed); len(b) == 0 || b[len(b)-1].Failures < 2 {
		t.Errorf("the failing image was not tried meanwhile: %+v", b)
	}
}

// testClock is a clock that a test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A cloud that is down for an hour is tried some ten times, and has the image
// soon after it is back. Other clouds have it at once.
func TestProviderDownForAnHour(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	s.addProvider("west", "qcow2", "img")
	clock := &testClock{now: time.Now()}
	var tries atomic.Int32
	var up atomic.Bool
	s.cloud("north").SetHook(func(_ context.Context, c fake.Call) error {
		if up.Load() || c.Op != fake.OpUpload || c.Done {
			return nil
		}
		tries.Add(1)
		return errors.New("gateway timeout")
	})
	b := s.run(func(d *Deps) { d.Now, d.Policy = clock.Now, plan.DefaultPolicy() })
	s.ready("img", 1, "west")
	s.ready("other", 1, "south")
	aMinute := func() {
		clock.move(time.Minute)
		b.control.Wake() // its alarm clock is real
		s.eventually("nothing is to be done", func() bool {
			in := b.control.Snapshot("img")
			return len(plan.Decide(in).Actions)+len(in.InFlight.Uploads) == 0
		})
	}
	for range 60 {
		aMinute()
	}
	if n := tries.Load(); n < 5 || n > 10 {
		t.Errorf("%d tries in an hour", n)
	}
	up.Store(true)
	for range 33 { // the longest back-off, and its share of jitter
		aMinute()
	}
	s.ready("img", 1, "north")
	s.eventually("the failure is forgotten", func() bool { return len(s.uploads("img", "north", zkmodel.UploadFailed)) == 0 })
	undisturbed()
}

// An image that leaves the configuration and comes back begins anew.
func TestImageRemovedAndAddedBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.run()
	s.ready("img", 1, "north")
	first := s.builds("img", zkmodel.BuildReady)[0].ID
	without := copyOf(s.config)
	without.DiskImages = nil
	without.Providers[0].DiskImages = nil
	if err := b.Reload(without); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is gone", func() bool {
		return len(s.tree("img").Builds) == 0 && len(s.inCloud("north")) == 0 && len(s.files()) == 0
	})
	if err := b.Reload(copyOf(s.config)); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 1, "north")
	if id := s.builds("img", zkmodel.BuildReady)[0].ID; id <= first {
		t.Errorf("build id %s after %s", id, first)
	}
}

// What a builder before us left on this host, and in the tree, is taken over:
// Nodepool's builds have other ids and no manifest.
func TestTakeoverFromNodepool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := os.MkdirAll(s.config.ImagesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	const owner, id = "47d8aaa0-0180-449c-9d8f-4155b7fbb43a", "5446a9b04ed29e48231fd2c8d07d9f0a"
	for file, text := range map[string]string{
		"builder_id.txt": owner, "img-" + id + ".qcow2": "image", "img-" + id + ".d/manifest": "x",
		"img-ffffffffffffffffffffffffffffffff.qcow2": "nobody's",
	} {
		path := filepath.Join(s.config.ImagesDir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	theirs := &zkmodel.Build{Image: "img", ID: id, Builder: "host.example.org", BuilderID: owner, Formats: zkmodel.Formats{"qcow2"}}
	theirs.State, theirs.StateTime = zkmodel.BuildReady, zkmodel.EpochOf(time.Now())
	data, err := theirs.Encode()
	if err != nil {
		t.Fatal(err)
	}
	session := s.store.Session()
	if err := session.EnsurePath(t.Context(), zkmodel.BuildsPath("img")); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Create(t.Context(), theirs.Path(), data, 0); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.ready("img", 1, "north") // theirs is uploaded, none is built
	for n := 2; n <= 3; n++ {
		s.request()
		s.eventually("the request is served", func() bool { return s.tree("img").BuildRequested == nil })
	}
	s.eventually("theirs is gone, and nobody's is not", func() bool {
		for _, gone := range []string{"img-" + id + ".qcow2", "img-" + id + ".d"} {
			if _, err := os.Stat(filepath.Join(s.config.ImagesDir, gone)); err == nil {
				return false
			}
		}
		_, err := os.Stat(filepath.Join(s.config.ImagesDir, "img-ffffffffffffffffffffffffffffffff.qcow2"))
		return err == nil && len(s.builds("img", zkmodel.BuildReady)) == 2
	})
}
