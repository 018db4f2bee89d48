package builder

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
)

// What is left out of the configuration is frozen in tree, disk and cloud, while
// the rest is built, sent and cleaned, and what an operator orders is done.
func TestWhatIsLeftOutIsFrozen(t *testing.T) {
	for name, change := range map[string]func(*configs.Config){
		"image": func(c *configs.Config) {
			c.DiskImages[0].KeepBuilds, c.DiskImages[0].RebuildAge = 1, time.Nanosecond
			c.Freeze(configs.Frozen{Kind: "image", Name: "img"})
		},
		"image's name": func(c *configs.Config) {
			c.DiskImages = c.DiskImages[1:]
			c.Freeze(configs.Frozen{Kind: "image"})
		},
		"provider": func(c *configs.Config) {
			c.DiskImages[0].KeepBuilds, c.Providers[0].DiskImages = 1, c.Providers[0].DiskImages[1:]
			c.Freeze(configs.Frozen{Kind: "provider", Name: "north"})
		},
		"provider's image": func(c *configs.Config) {
			c.DiskImages[0].KeepBuilds, c.Providers[0].DiskImages = 1, c.Providers[0].DiskImages[1:]
			c.Freeze(configs.Frozen{Kind: "provider image", Provider: "north"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.addImage("other")
			s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, configs.ProviderImage{Name: "other"})
			s.addProvider("south", "raw", "other")
			stop := s.start()
			s.ready("img", 1, "north")
			s.ready("other", 1, "north", "south")
			s.askFor("img")
			s.ready("img", 2, "north")
			stop()
			before := s.state("img")
			change(s.config)
			var looks atomic.Int32
			s.cloud("south").SetHook(func(_ context.Context, c fake.Call) error {
				if c.Op == fake.OpList && !c.Done {
					looks.Add(1)
				}
				return nil
			})
			s.start(func(d *Deps) { d.Resync, d.LeakAge = 100*time.Millisecond, 100*time.Millisecond })
			s.askFor("other")
			s.eventually("the rest is built, sent, and looked through three times", func() bool {
				return len(s.uploads("other", "south", zkmodel.UploadReady)) == 2 && looks.Load() >= 4
			})
			if diff := cmp.Diff(before, s.state("img")); diff != "" {
				t.Errorf("what is left out has changed (-before +after):\n%s", diff)
			}
			sent := s.builds("img", zkmodel.BuildReady)[0].Uploads[0].ExternalID.Text()
			oldest := s.builds("img", zkmodel.BuildReady)[0].ID
			if err := s.store.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "img", oldest, false); err != nil {
				t.Fatal(err)
			}
			s.eventually("what an operator deletes goes", func() bool {
				return len(s.tree("img").Builds) == 1 && !slices.Contains(s.inCloud("north"), sent) &&
					!slices.ContainsFunc(s.files(), func(f string) bool { return strings.HasPrefix(f, "img-"+oldest) })
			})
		})
	}
}

// state is what there is of an image in tree, disk and cloud.
func (s *site) state(image string) []string {
	s.t.Helper()
	var all []string
	for _, b := range s.tree(image).Builds {
		all = append(all, "build "+b.ID+" "+string(b.State))
		for _, u := range b.Uploads {
			all = append(all, "upload "+u.Path()+" "+string(u.State), "in cloud "+u.ExternalID.Text())
			if !slices.Contains(s.inCloud(u.Provider), u.ExternalID.Text()) {
				all = append(all, "lost")
			}
		}
	}
	for _, f := range s.files() {
		if strings.HasPrefix(f, image+"-") {
			all = append(all, f)
		}
	}
	return all
}

func (s *site) askFor(image string) {
	s.t.Helper()
	if err := s.store.RequestBuild(s.t.Context(), image); err != nil {
		s.t.Fatal(err)
	}
}
