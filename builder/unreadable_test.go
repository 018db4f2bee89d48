package builder

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Where a builder may not read, nothing is deleted: neither records, nor files, nor
// images in clouds; and nothing is built or sent that may be there.
func TestUnreadableIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "other")
	s.addProvider("south", "raw", "img", "other")
	stop := s.start()
	s.ready("img", 1, "north", "south")
	s.ready("other", 1, "north", "south")
	stop()

	build := s.builds("img", zkmodel.BuildReady)[0]
	upload := s.uploads("img", "north", zkmodel.UploadReady)[0]
	folder := zkmodel.UploadsPath("img", build.ID, "north")
	for _, part := range []string{
		zkmodel.Root, zkmodel.ImagesRoot, zkmodel.ImagePath("img"), zkmodel.BuildsPath("img"), build.Path(),
		zkmodel.ProvidersPath("img", build.ID), folder, upload.Path(), zkmodel.BuildsPath("other"), zkmodel.OwnRoot,
	} {
		t.Run(part, func(t *testing.T) {
			s.t = t
			proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
			client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: s.root, Timeout: 400 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			before := s.world()
			var lists, deletions atomic.Int32
			for _, name := range []string{"north", "south"} {
				s.cloud(name).SetHook(func(_ context.Context, c fake.Call) error {
					switch {
					case c.Op == fake.OpList && !c.Done:
						lists.Add(1)
					case c.Op == fake.OpDeleteImage:
						deletions.Add(1)
					}
					return nil
				})
			}
			often := func(d *Deps) { d.Client, d.Resync, d.LeakAge = client, 50*time.Millisecond, 50*time.Millisecond }
			looks := func() {
				lists.Store(0)
				for deadline := time.Now().Add(time.Second); lists.Load() < 10 && time.Now().Before(deadline); {
					<-time.After(20 * time.Millisecond)
				}
			}
			stop := s.start(often)
			zktest.Eventually(t, func() bool { return lists.Load() >= 4 }, "searches for leaks")
			session, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			allow := zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, part)
			proxy.Cut()
			<-session.Context().Done()
			proxy.Heal()
			looks()
			stop()
			stop = s.start(often) // one that has never seen the part
			looks()
			stop()
			allow()
			if after := s.world(); !slices.Equal(before, after) {
				t.Errorf("before: %q\nafter: %q", before, after)
			}
			if n := deletions.Load(); n > 0 {
				t.Errorf("%d images were deleted", n)
			}
		})
	}
}

// world is what is in the tree, on the disk and in the clouds.
func (s *site) world() []string {
	s.t.Helper()
	all := s.files()
	for _, image := range []string{"img", "other"} {
		for _, b := range s.tree(image).Builds {
			all = append(all, b.Path()+" "+string(b.State))
			for _, u := range b.Uploads {
				all = append(all, u.Path()+" "+string(u.State))
			}
		}
	}
	for _, provider := range []string{"north", "south"} {
		all = append(all, s.inCloud(provider)...)
	}
	slices.Sort(all)
	return all
}
