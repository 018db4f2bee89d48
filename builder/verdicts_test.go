package builder

import (
	"context"
	"testing"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// judge says something of a build of "img", as the commands do.
func (s *site) judge(change func(*operate.Judgement)) {
	s.t.Helper()
	j := operate.Judgement{Image: "img", Kind: zkmodel.RolledBack}
	change(&j)
	if _, err := operate.New(s.store, "ann@desk").Judge(s.t.Context(), j); err != nil {
		s.t.Fatal(err)
	}
}

// another has a build of "img" made, and waits until it is everywhere.
func (s *site) another(providers ...string) string {
	s.t.Helper()
	const image = "img"
	before := s.tree(image).Builds
	if err := s.store.RequestBuild(s.t.Context(), image); err != nil {
		s.t.Fatal(err)
	}
	id := ""
	s.eventually("another build of "+image, func() bool {
		builds := s.tree(image).Builds
		last := builds[len(builds)-1]
		id = last.ID
		return id != before[len(before)-1].ID && last.State == zkmodel.BuildReady && s.has(image, id, providers...)
	})
	return id
}

// has reports whether a build has a ready upload at providers.
func (s *site) has(image, build string, providers ...string) bool {
	s.t.Helper()
	i := s.tree(image)
	for _, p := range providers {
		found := false
		if b := i.Build(build); b != nil {
			for _, u := range b.Uploads {
				found = found || u.Provider == p && u.State == zkmodel.UploadReady
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// Two builders, two images, two providers: a build that was rolled back and deleted at one
// is not sent there again, nor is another built because it is missing; it stays at the
// other provider. What is pinned stays however many builds follow, and goes when it is
// released. What was said of builds that are gone is forgotten. Mistakes: a build that
// comes back, a build for nothing, a pinned build that is cleaned, a record that grows for
// ever.
func TestBuildersHeedVerdicts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, s.config.Providers[0].DiskImages[0])
	s.config.Providers[0].DiskImages[1].Name = "other"
	s.addProvider("south", "qcow2", "img", "other")
	s.start()
	s.config.ImagesDir += "2"
	s.start(func(d *Deps) { d.Client, d.Hostname, d.FQDN = s.dial(s.root), "host2", "host2.example.org" })
	everywhere := []string{"north", "south"}
	s.ready("img", 1, everywhere...)
	s.ready("other", 1, everywhere...)
	first := s.tree("img").Builds[0].ID
	bad := s.another(everywhere...)
	s.judge(func(j *operate.Judgement) { j.Providers, j.Delete, j.Pin = []string{"north"}, true, true })
	s.eventually("the bad build has left north", func() bool {
		return len(s.uploads("img", "north", zkmodel.UploadReady)) == 1 && len(s.inCloud("north")) == 2
	})
	third := s.another(everywhere...)
	s.another(everywhere...)
	last := s.another(everywhere...)
	s.eventually("old builds are cleaned", func() bool { return s.tree("img").Build(third) == nil && s.tree("img").Build(bad) == nil })
	if !s.has("img", first, "north") || s.has("img", bad, "north") {
		t.Errorf("pinned: %v, rolled back: %v", s.has("img", first, "north"), s.has("img", bad, "north"))
	}
	if n := len(s.tree("other").Builds); n != 1 || !s.has("other", s.tree("other").Builds[0].ID, everywhere...) {
		t.Errorf("the other image has %d builds", n)
	}
	s.eventually("the verdict is forgotten", func() bool { return s.tree("img").Verdicts != nil && len(s.tree("img").Verdicts.List) == 0 })
	if _, err := operate.New(s.store, "ann").Release(t.Context(), "img", nil); err != nil {
		t.Fatal(err)
	}
	s.eventually("what was pinned is cleaned", func() bool { return s.tree("img").Build(first) == nil })
	if _, there, err := s.store.Session().Exists(t.Context(), zkmodel.VerdictsPath("img")); err != nil || there {
		t.Errorf("the empty record stays (%v)", err)
	}
	if builds := s.tree("img").Builds; len(builds) != 2 || builds[1].ID != last {
		t.Errorf("%d builds, the last is %s", len(builds), builds[len(builds)-1].ID)
	}
}

// A pinned build that Nodepool's command deletes, without a lock and without a question, ends its
// pins: the previous build is active in both providers, and the event says so. Mistakes: a pin of
// a deleted build that holds back canaries and newer builds without limit; a provider without a
// build.
func TestPinEndsWithItsBuild(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.image().KeepBuilds = 3
	events := recipe.NewLog(event.Root, "/poolkeeper/builder/host")
	s.start(func(d *Deps) { d.Client.SetLog(events) })
	everywhere := []string{"north", "south"}
	s.ready("img", 1, everywhere...)
	first := s.tree("img").Builds[0].ID
	second := s.another(everywhere...)
	bad := s.another(everywhere...)
	s.judge(func(j *operate.Judgement) { j.Build, j.Pin = bad, true })
	if err := s.store.PauseImage(t.Context(), "img"); err != nil { // so that no other takes its place
		t.Fatal(err)
	}
	if !s.has("img", first, everywhere...) {
		t.Fatal("the oldest build is cleaned")
	}
	s.markByHand(zkmodel.BuildPath("img", second), "deleting")
	s.eventually("the pins have ended, and the oldest build is active", func() bool {
		i := s.tree("img")
		for _, p := range everywhere {
			u := i.Serving(p, zkmodel.Suspect)
			if u == nil || u.Build == second || u.Build == bad {
				t.Errorf("in %s: %+v is active", p, u)
			}
			if i.Pin(p) != nil {
				return false
			}
		}
		return i.Build(second) == nil
	})
	var reason any
	reader := events.Read(s.store.Session(), recipe.LogPosition{})
	for entry, ok, err := reader.Poll(t.Context()); ok && err == nil; entry, ok, err = reader.Poll(t.Context()) {
		if e, err := event.Of(entry); err == nil && e.Type == event.ImageJudged {
			reason = e.Data["reason"]
		}
	}
	if reason != "build "+second+" is deleted" {
		t.Errorf("the last event's reason is %v", reason)
	}
}

// An upload under way ends when its build is rejected there, and is not begun again; that
// to another provider goes on. Mistake: the rejected build comes to the cloud all the same.
func TestUploadOfARejectedBuildEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	sends := make(chan struct{}, 10)
	s.start()
	s.ready("img", 1, "north", "south")
	s.cloud("north").SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpUpload && !c.Done {
			sends <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	bad := s.another("south")
	zktest.Await(t, sends, "an upload begins")
	s.judge(func(j *operate.Judgement) { j.Build, j.Kind, j.Providers = bad, zkmodel.Rejected, []string{"north"} })
	s.eventually("nothing of it is left", func() bool { return len(s.uploads("img", "north", zkmodel.UploadUploading)) == 0 })
	s.cloud("north").SetHook(nil)
	next := s.another("north", "south")
	if s.has("img", bad, "north") || !s.has("img", bad, "south") || len(sends) != 0 || next == bad {
		t.Errorf("rejected, and sent: %v; at the other provider: %v; begun %d times more", s.has("img", bad, "north"), s.has("img", bad, "south"), len(sends))
	}
}
