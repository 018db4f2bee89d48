package builder

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
)

// leak puts an image without a record into a cloud.
func (s *site) leak(provider, upload string) string {
	s.t.Helper()
	images, err := s.cloud(provider).ListImages(s.t.Context())
	if err != nil || len(images) == 0 {
		s.t.Fatal("no image to make another of", err)
	}
	meta := maps.Clone(images[0].Metadata)
	meta[providers.MetaUpload] = upload
	disks, err := disk.Peek(s.config.ImagesDir)
	if err != nil {
		s.t.Fatal(err)
	}
	file := disks.File(disk.Name{Image: meta[providers.MetaImage], ID: meta[providers.MetaBuild]}, "qcow2")
	info, err := os.Stat(file)
	if err != nil {
		s.t.Fatal(err)
	}
	id, err := s.cloud(provider).UploadImage(s.t.Context(), providers.ImageUpload{
		Name: "leak", Path: file, Format: "qcow2", Size: info.Size(), Metadata: meta, Verified: true,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// findings are what searches have found in a provider, as the tree has it.
func (s *site) findings(provider string) string {
	s.t.Helper()
	data, _, err := s.store.Session().Get(s.t.Context(), zkmodel.FindingsPath(provider))
	if err != nil {
		return ""
	}
	return string(data)
}

// Searches count whoever makes them: a builder that never lives to see its second
// one still has leaked images deleted. Catches: findings in memory only.
func TestSearchesForLeaksCountAcrossRestarts(t *testing.T) {
	t.Parallel()
	const age = 3 * time.Second
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	stop := s.start()
	s.ready("img", 1, "north", "south")
	stop()
	north, south := s.leak("north", "0000000091"), s.leak("south", "0000000092")
	lists := map[string]*atomic.Int32{}
	for _, provider := range []string{"north", "south"} {
		n := &atomic.Int32{}
		lists[provider] = n
		s.cloud(provider).SetHook(func(_ context.Context, c fake.Call) error {
			if c.Op == fake.OpList && !c.Done {
				n.Add(1)
			}
			return nil
		})
	}
	old := func(d *Deps) { d.LeakAge = age }
	stop = s.start(old)
	s.eventually("both are found", func() bool { return s.findings("north") != "" && s.findings("south") != "" })
	stop()
	for _, id := range []string{north, south} {
		if !slices.Contains(append(s.inCloud("north"), s.inCloud("south")...), id) {
			t.Errorf("%s is deleted in the first search", id)
		}
	}
	<-time.After(age) // by ZooKeeper's clock
	lists["north"].Store(0)
	stop = s.start(old)
	s.eventually("both are gone", func() bool { return s.findings("north") == "" && s.findings("south") == "" })
	stop()
	if n := lists["north"].Load(); n != 1 {
		t.Errorf("it took the second builder %d searches, want 1", n)
	}
	for provider, id := range map[string]string{"north": north, "south": south} {
		if slices.Contains(s.inCloud(provider), id) {
			t.Errorf("%s is left in %s", id, provider)
		}
	}
}

// A search that fails has what others found forgotten. While a version of the configuration is
// switched the cloud is asked, and nothing is decided by what it says.
func TestFailedSearchForgetsWhatWasFound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start()
	s.ready("img", 1, "north")
	stop()
	leaked := s.leak("north", "0000000091")
	broken := &atomic.Bool{}
	var switching atomic.Bool
	var searches, waiting atomic.Int32 // while it is switched
	s.cloud("north").SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpList && switching.Load() {
			searches.Add(1)
		}
		if c.Op == fake.OpList && broken.Load() {
			return errors.New("out of order")
		}
		return nil
	})
	pushed := make(chan struct{})
	s.start(func(d *Deps) {
		d.LeakAge = 2 * time.Second
		d.Deciding = func(ctx context.Context) func() {
			if switching.Load() && searches.Load() > 0 {
				waiting.Add(1)
				select {
				case <-pushed:
				case <-ctx.Done():
				}
			}
			return func() {}
		}
	})
	s.eventually("it is found", func() bool { return s.findings("north") != "" })
	broken.Store(true)
	s.eventually("it is forgotten", func() bool { return s.findings("north") == "" })
	broken.Store(false)
	if !slices.Contains(s.inCloud("north"), leaked) {
		t.Error("it was deleted although a search failed")
	}
	s.eventually("it is found again", func() bool { return s.findings("north") != "" })
	switching.Store(true)
	s.eventually("the second search waits with its decision", func() bool { return waiting.Load() > 0 })
	if !slices.Contains(s.inCloud("north"), leaked) {
		t.Error("it was deleted while a version is switched")
	}
	close(pushed)
	s.eventually("it is gone", func() bool { return !slices.Contains(s.inCloud("north"), leaked) })
}

// An upload that a cloud has made into two images, as one that it did not answer and that was sent
// again, leaves one without a record that names it. Catches: one that stays for as long as the
// other serves; the other, deleted with it.
func TestSecondImageOfAnUploadIsLeaked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start()
	s.ready("img", 1, "north")
	stop()
	serves := s.uploads("img", "north", zkmodel.UploadReady)[0]
	second := s.leak("north", serves.ID)
	s.start(func(d *Deps) { d.LeakAge = time.Second })
	s.eventually("the second is gone", func() bool { return !slices.Contains(s.inCloud("north"), second) })
	if left := s.inCloud("north"); !slices.Equal(left, []string{serves.ExternalID.Text()}) {
		t.Errorf("left are %v, %s serves", left, serves.ExternalID.Text())
	}
}
